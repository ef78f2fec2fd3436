// out[i] = ~a[i], which is -a[i] - 1
extern "C" __global__ void bit_not(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = ~a[i];
    }
}
