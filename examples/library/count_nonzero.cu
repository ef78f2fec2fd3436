// out[0] += the number of elements of a that are not 0.
extern "C" __global__ void count_nonzero(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (a[i] != 0)
            atomicAdd(out, 1);
    }
}
