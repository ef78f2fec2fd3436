// Colours for the nodes: in each round the nodes of highest priority among their uncoloured neighbours take
// the least colour that is free.
__device__ unsigned priority(unsigned v)
{
    v = (v ^ 61u) ^ (v >> 16);
    v += v << 3;
    v ^= v >> 4;
    v *= 0x27d4eb2du;
    return v ^ (v >> 15);
}

extern "C" __global__ void graph_coloring(const int *offsets, const int *neighbours, int n,
                                          volatile int *colour, int *rounds)
{
    int v = threadIdx.x;
    bool waiting = v < n;
    if (waiting)
        colour[v] = -1;
    int count = 0;
    while (__syncthreads_or(waiting)) {
        bool chosen = waiting;
        unsigned taken = 0;
        if (waiting) {
            unsigned mine = priority(v);
            for (int e = offsets[v]; e < offsets[v + 1]; e++) {
                int w = neighbours[e];
                if (colour[w] >= 0)
                    taken |= 1u << colour[w];
                else if (priority(w) > mine)
                    chosen = false;
            }
        }
        __syncthreads();
        if (chosen) {
            colour[v] = __ffs(~taken) - 1;
            waiting = false;
        }
        count++;
    }
    if (v == 0)
        *rounds = count;
}
