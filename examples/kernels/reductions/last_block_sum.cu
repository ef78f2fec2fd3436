// Every block leaves a partial sum; the block that finishes last adds them up.
extern "C" __global__ void last_block_sum(const int *in, volatile int *partial, unsigned *finished, int *out,
                                          int n)
{
    __shared__ int sums[32];
    __shared__ bool last;
    int t = threadIdx.x;

    int i = blockIdx.x * blockDim.x + t;
    sums[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            sums[t] += sums[t + half];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = sums[0];
        __threadfence();
        unsigned ticket = atomicInc(finished, gridDim.x - 1);
        last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        int total = 0;
        for (int block = 0; block < gridDim.x; block++)
            total += partial[block];
        *out = total;
    }
}
