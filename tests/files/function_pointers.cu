// A function pointer that each thread chooses: its comparisons are decided by one another.
// launch: 1 6 i32[6]
// expect: [0, 2, 6, 4, 12, 6]
__device__ __noinline__ int next(int x)
{
    return x + 1;
}

__device__ __noinline__ int triple(int x)
{
    return x * 3;
}

extern "C" __global__ void choose(int *out)
{
    int i = threadIdx.x;
    int (*f)(int) = i & 1 ? next : triple;
    out[i] = f(i);
}
