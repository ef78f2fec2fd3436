// out[i] = a[i], but at least low[i] and at most high[i]; high[i] where these cross.
extern "C" __global__ void clip(const int *a, const int *low, const int *high, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = min(max(a[i], low[i]), high[i]);
}
