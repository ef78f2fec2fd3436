// Page ranks in fixed point with sixteen fractional bits, pull style, a fixed number of rounds.
#define ONE 65536

extern "C" __global__ void page_rank(const int *offsets, const int *sources, const int *degree, int n,
                                     int rounds, int *rank)
{
    __shared__ int share[32];
    int v = threadIdx.x;
    int mine = ONE;
    for (int r = 0; r < rounds; r++) {
        share[v] = v < n && degree[v] ? mine / degree[v] : 0;
        __syncthreads();
        if (v < n) {
            int sum = 0;
            for (int e = offsets[v]; e < offsets[v + 1]; e++)
                sum += share[sources[e]];
            mine = ONE * 15 / 100 + (int)((long long)sum * 85 / 100);
        }
        __syncthreads();
    }
    if (v < n)
        rank[v] = mine;
}
