// Loops within loops, with break and continue, whose trips differ from thread to thread.
// launch: 1 6 i32[]:0,1,2,3,5,9 i32[6]
// expect: [0, 1, 2, 3, 5, 9] ; [sum(i * j for i in range(n) for j in range(0, i + 1, 2) if i + j <= 9) for n in (0, 1, 2, 3, 5, 9)]
extern "C" __global__ void loops(const int *n, int *out)
{
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < n[threadIdx.x]; i++) {
#pragma unroll 1
        for (int j = 0; j <= i; j++) {
            if (j & 1)
                continue;
            if (i + j > 9)
                break;
            sum += i * j;
        }
    }
    out[threadIdx.x] = sum;
}
