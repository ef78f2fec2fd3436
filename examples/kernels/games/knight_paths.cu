// The number of knight's walks of each length from a corner to every square of a board.
__constant__ signed char jumps[8][2] = {
    {1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2},
};

extern "C" __global__ void knight_paths(unsigned *walks, int side, int length)
{
    __shared__ unsigned ways[64];
    int x = threadIdx.x % side, y = threadIdx.x / side;
    ways[threadIdx.x] = threadIdx.x == 0;
    for (int step = 0; step < length; step++) {
        __syncthreads();
        unsigned sum = 0;
        for (int k = 0; k < 8; k++) {
            int u = x + jumps[k][0], v = y + jumps[k][1];
            if (u >= 0 && v >= 0 && u < side && v < side)
                sum += ways[v * side + u];
        }
        __syncthreads();
        ways[threadIdx.x] = sum;
    }
    walks[threadIdx.x] = ways[threadIdx.x];
}
