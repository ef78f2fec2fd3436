// Count positive numbers: one atomic addition per warp, by the leader of the lanes that have something to
// add.
__device__ int aggregated_increment(int *counter)
{
    unsigned mask = __activemask();
    int leader = __ffs(mask) - 1;
    int lane = threadIdx.x & 31;
    int base = 0;
    if (lane == leader)
        base = atomicAdd(counter, __popc(mask));
    base = __shfl_sync(mask, base, leader);
    return base + __popc(mask & ((1u << lane) - 1));
}

extern "C" __global__ void count_aggregated(const int *in, int *count, int *seen, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0) {
        int place = aggregated_increment(count);
        // The places are all different, in an order that is nobody's business.
        atomicAdd(&seen[place], 1);
    }
}
