// out[0] += the dot product of a and b, each of n elements; one thread per element, added up by atomics.
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void dot(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(out, a[i] * b[i]);
}
