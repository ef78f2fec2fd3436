// A histogram with __match_any_sync: the lanes of a warp that hold the same value add together.
extern "C" __global__ void histogram_match(const int *values, int *bins)
{
    int lane = threadIdx.x & 31;
    int value = values[blockIdx.x * blockDim.x + threadIdx.x];
    unsigned peers = __match_any_sync(0xffffffff, value);
    bool leader = lane == __ffs(peers) - 1;
    if (leader)
        atomicAdd(bins + value, __popc(peers));
}
