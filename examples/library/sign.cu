// out[i] = -1, 0 or 1 as a[i] is negative, zero or positive
extern "C" __global__ void sign(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = (a[i] > 0) - (a[i] < 0);
    }
}
