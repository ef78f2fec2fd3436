// Grundy numbers of subtraction games by the least excluded value, and who wins sums of heaps.
extern "C" __global__ void nim_grundy(const unsigned char *moves, int n_moves, int heap,
                                      unsigned char *grundy,
                                      const unsigned char *games, unsigned char *wins)
{
    __shared__ unsigned char g[64];
    if (threadIdx.x == 0)
        for (int size = 0; size < heap; size++) {
            unsigned reachable = 0;
            for (int k = 0; k < n_moves; k++)
                if (moves[k] <= size)
                    reachable |= 1u << g[size - moves[k]];
            g[size] = __ffs(~reachable) - 1;
        }
    __syncthreads();
    for (int i = threadIdx.x; i < heap; i += blockDim.x)
        grundy[i] = g[i];
    uchar4 game = reinterpret_cast<const uchar4 *>(games)[threadIdx.x];
    wins[threadIdx.x] = (g[game.x] ^ g[game.y] ^ g[game.z] ^ g[game.w]) != 0;
}
