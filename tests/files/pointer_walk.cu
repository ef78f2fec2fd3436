// A pointer that walks through its buffer by each thread's own step, forwards or backwards.
// launch: 1 4 i32[]:1,2,3,4,5,6,7,8 i32[4] i32:3
// expect: [1, 2, 3, 4, 5, 6, 7, 8] ; [3 + 2 + 1, 3 + 3 + 3, 3 + 4 + 5, 3 + 5 + 7]
extern "C" __global__ void walk(const int *x, int *out, int n)
{
    int i = threadIdx.x;
    const int *p = x + 2;
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        sum += *p;
        p += i - 1;
    }
    out[i] = sum;
}
