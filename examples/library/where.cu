// out[i] = a[i] where condition[i] is not 0, else b[i]
extern "C" __global__ void where(const int *condition, const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = condition[i] ? a[i] : b[i];
}
