// out[i] = the number of one bits among the 32 of a[i]; a negative number is in two's complement.
extern "C" __global__ void popcount(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = __popc(a[i]);
    }
}
