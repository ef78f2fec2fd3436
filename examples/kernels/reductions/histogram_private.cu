// A histogram of bytes: one in shared memory per block, added to the global one at the end.
#define BINS 16

extern "C" __global__ void histogram_private(const unsigned char *data, unsigned *bins, int n)
{
    __shared__ unsigned local_bins[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        local_bins[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local_bins[data[i] >> 4], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (local_bins[b])
            atomicAdd(&bins[b], local_bins[b]);
}
