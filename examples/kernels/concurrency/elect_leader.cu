// Groups of equal keys within a warp, diverged: the leader of each adds for all and hands out places.
extern "C" __global__ void elect_leader(const unsigned char *keys, int *counters, int *places, int n)
{
    int i = threadIdx.x, lane = i & 31;
    int key = i < n ? keys[i] : 255;
    unsigned active = __ballot_sync(0xffffffffu, key != 255);
    if (key != 255) {
        unsigned group = __match_any_sync(active, key);
        int leader = __ffs(group) - 1;
        int rank = __popc(group & ((1u << lane) - 1));
        int base = 0;
        if (lane == leader)
            base = atomicAdd(&counters[key], __popc(group));
        base = __shfl_sync(group, base, leader);
        places[i] = base + rank;
    }
    int all_same;
    __match_all_sync(0xffffffffu, key, &all_same);
    if (lane == 0 && all_same)
        atomicAdd(&counters[4], 1);
}
