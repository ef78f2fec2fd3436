// Which rows are sorted, which hold a zero, and in how many places: votes of a warp and of a thread block.
extern "C" __global__ void vote_all(const int *table, int *sorted, int *zero, int *count)
{
    int row = blockIdx.x;
    int t = threadIdx.x;
    int width = blockDim.x;
    int mine = table[row * width + t];
    int next = t + 1 < width ? table[row * width + t + 1] : mine;

    bool in_order = __all_sync(0xffffffffu, mine <= next);
    bool any_zero = __any_sync(0xffffffffu, mine == 0);
    int all = __syncthreads_and(in_order);
    int any = __syncthreads_or(any_zero);
    int zeros = __syncthreads_count(mine == 0);
    if (t == 0) {
        sorted[row] = all != 0;
        zero[row] = any != 0;
        count[row] = zeros;
    }
}
