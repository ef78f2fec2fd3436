// out[i] = the larger of a[i] and b[i]
extern "C" __global__ void maximum(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = max(a[i], b[i]);
    }
}
