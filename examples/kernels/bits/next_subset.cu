// Gosper's hack: all subsets of k of n elements in order, as masks, one size a thread.
extern "C" __global__ void next_subset(int n, unsigned *masks, int *counts, int room)
{
    int k = threadIdx.x + 1;
    unsigned *mine = masks + threadIdx.x * room;
    unsigned x = (1u << k) - 1;
    int count = 0;
    while (x < 1u << n) {
        if (count < room)
            mine[count] = x;
        count++;
        unsigned lowest = x & -x;
        unsigned ripple = x + lowest;
        x = (((ripple ^ x) >> 2) / lowest) | ripple;
    }
    counts[threadIdx.x] = count;
}
