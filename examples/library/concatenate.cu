// The n elements of a, then the m of b
extern "C" __global__ void concatenate(const int *a, const int *b, int *out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i];
    if (i < m)
        out[n + i] = b[i];
}
