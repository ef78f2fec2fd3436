// out[i] = 1 where a[i] != b[i], else 0
extern "C" __global__ void not_equal(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] != b[i];
    }
}
