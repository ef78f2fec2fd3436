// out[i] = the number of one bits in x[i], looked at one by one until none is left.
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void popcount(const unsigned *x, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned rest = x[i];
    int count = 0;
#pragma unroll 1
    while (rest != 0) {
        count += rest & 1;
        rest >>= 1;
    }
    out[i] = count;
}
