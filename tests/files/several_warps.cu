// Threads of several warps, the last of them partly filled, that loop for different times.
// launch: 1 70 i32[70]
// expect: [sum(range(i % 5)) for i in range(70)]
extern "C" __global__ void warps(int *out)
{
    int n = threadIdx.x;
#pragma unroll 1
    while (n >= 5)
        n -= 5;
    int sum = 0;
#pragma unroll 1
    while (n > 0)
        sum += --n;
    out[threadIdx.x] = sum;
}
