// Inclusive prefix sums of a thread block of several warps with shuffles.
__device__ __forceinline__ int warp_inclusive(int value, int lane)
{
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int below = __shfl_up_sync(0xffffffffu, value, d);
        if (lane >= d)
            value += below;
    }
    return value;
}

extern "C" __global__ void scan_shuffle(const int *in, int *out)
{
    __shared__ int totals[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int value = warp_inclusive(in[threadIdx.x], lane);
    if (lane == 31)
        totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int total = lane < blockDim.x / 32 ? totals[lane] : 0;
        totals[lane] = warp_inclusive(total, lane);
    }
    __syncthreads();
    if (warp > 0)
        value += totals[warp - 1];
    out[threadIdx.x] = value;
}
