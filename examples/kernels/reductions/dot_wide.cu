// A dot product with a 64-bit sum, strided over the grid, one 64-bit atomic addition a thread.
extern "C" __global__ void dot_wide(const int *a, const int *b, unsigned long long *out, int n)
{
    long long sum = 0;
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        sum += (long long)a[i] * b[i];
    atomicAdd(out, (unsigned long long)sum);
}
