// out[i] = a[i] & b[i]
extern "C" __global__ void bit_and(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] & b[i];
    }
}
