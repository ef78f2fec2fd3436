// A loop that all threads of a branch run alike, under a condition that differs.
// launch: 1 4 i32[4] i32:5
// expect: [0, sum(range(5)) + 1, 0, sum(range(5)) + 3]
// launch: 1 4 i32[4] i32:0
// expect: [0, 1, 0, 3]
extern "C" __global__ void branch(int *out, int n)
{
    int i = threadIdx.x;
    if (i & 1) {
        int sum = i;
#pragma unroll 1
        for (int k = 0; k < n; k++)
            sum += k;
        out[i] = sum;
    }
}
