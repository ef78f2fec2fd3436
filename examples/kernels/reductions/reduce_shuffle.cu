// A sum with warp shuffles: each warp sums its lanes, then the first warp sums the warps.
#define FULL_MASK 0xffffffffu

__inline__ __device__ int warp_sum(int value)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        value += __shfl_down_sync(FULL_MASK, value, offset);
    return value;
}

extern "C" __global__ void reduce_shuffle(const int *in, int *out, int n)
{
    __shared__ int partial[32];
    int lane = threadIdx.x % warpSize;
    int warp = threadIdx.x / warpSize;

    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        sum += in[i];
    sum = warp_sum(sum);
    if (lane == 0)
        partial[warp] = sum;
    __syncthreads();

    sum = threadIdx.x < blockDim.x / warpSize ? partial[lane] : 0;
    if (warp == 0)
        sum = warp_sum(sum);
    if (threadIdx.x == 0)
        atomicAdd(out, sum);
}
