// How many of the points of a Weyl sequence lie in the quarter circle, in whole numbers; one total per block.
extern "C" __global__ void monte_carlo_pi(unsigned step_x, unsigned step_y, int points, unsigned *inside)
{
    __shared__ unsigned hits;
    if (threadIdx.x == 0)
        hits = 0;
    __syncthreads();
    unsigned mine = 0;
    int first = blockIdx.x * points;
    for (int i = first + threadIdx.x; i < first + points; i += blockDim.x) {
        unsigned long long x = (step_x * (unsigned)i) >> 8, y = (step_y * (unsigned)i) >> 8;
        if (x * x + y * y < (1ull << 48))
            mine++;
    }
    if (mine)
        atomicAdd(&hits, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        inside[blockIdx.x] = hits;
}
