// The rank of a matrix of bits over GF(2): a row a lane, pivots by ballot, elimination by shuffle.
extern "C" __global__ void rank_gf2(const unsigned *rows, int *rank)
{
    unsigned row = rows[blockIdx.x * 32 + threadIdx.x];
    bool used = false;
    int count = 0;
    for (int column = 0; column < 32; column++) {
        unsigned candidates = __ballot_sync(0xffffffffu, !used && (row >> column & 1));
        if (candidates == 0)
            continue;
        int leader = __ffs(candidates) - 1;
        unsigned pivot = __shfl_sync(0xffffffffu, row, leader);
        if (threadIdx.x == leader)
            used = true;
        else if (row >> column & 1)
            row ^= pivot;
        count++;
    }
    if (threadIdx.x == 0)
        rank[blockIdx.x] = count;
}
