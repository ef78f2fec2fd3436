// Stream compaction with ballots: a lane's place is the number of kept lanes below it, and of kept in warps
// before.
extern "C" __global__ void compact_ballot(const unsigned short *in, unsigned short *out, int *count,
                                          int limit, int n)
{
    __shared__ int kept[4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    int total = 0;
    for (int first = 0; first < n; first += blockDim.x) {
        int i = first + threadIdx.x;
        bool keep = i < n && in[i] < limit;
        unsigned votes = __ballot_sync(~0u, keep);
        if (lane == 0)
            kept[warp] = __popc(votes);
        __syncthreads();
        int place = total + __popc(votes & ~(~0u << lane));
        for (int w = 0; w < warps; w++) {
            if (w < warp)
                place += kept[w];
            total += kept[w];
        }
        if (keep)
            out[place] = in[i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *count = total;
}
