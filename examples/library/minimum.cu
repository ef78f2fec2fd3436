// out[i] = the smaller of a[i] and b[i]
extern "C" __global__ void minimum(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = min(a[i], b[i]);
    }
}
