// Prefix sums over a grid in one pass: each block waits for the sum of the blocks before it.
extern "C" __global__ void scan_chained(const unsigned *in, unsigned *out, unsigned *sums, int *ready)
{
    __shared__ unsigned values[32];
    __shared__ unsigned before;
    int t = threadIdx.x, b = blockIdx.x;
    int i = b * blockDim.x + t;

    values[t] = in[i];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d <<= 1) {
        unsigned left = t >= d ? values[t - d] : 0;
        __syncthreads();
        values[t] += left;
        __syncthreads();
    }
    if (t == 0) {
        unsigned sum = 0;
        if (b > 0) {
            while (atomicAdd(&ready[b - 1], 0) == 0)
                ;
            __threadfence();
            sum = *(volatile unsigned *)&sums[b - 1];
        }
        before = sum;
        sums[b] = sum + values[blockDim.x - 1];
        __threadfence();
        atomicExch(&ready[b], 1);
    }
    __syncthreads();
    out[i] = before + values[t];
}
