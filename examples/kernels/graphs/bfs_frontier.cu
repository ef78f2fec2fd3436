// Breadth-first search over rows of neighbours, level by level, from one thread block.
extern "C" __global__ void bfs_frontier(const int *row_offsets, const int *neighbours, int *level, int n,
                                        int source)
{
    __shared__ int changed;
    for (int v = threadIdx.x; v < n; v += blockDim.x)
        level[v] = v == source ? 0 : -1;
    int depth = 0;
    do {
        __syncthreads();
        if (threadIdx.x == 0)
            changed = 0;
        __syncthreads();
        for (int v = threadIdx.x; v < n; v += blockDim.x) {
            if (level[v] != depth)
                continue;
            for (int e = row_offsets[v]; e < row_offsets[v + 1]; e++) {
                int w = neighbours[e];
                if (level[w] < 0) {
                    level[w] = depth + 1;
                    changed = 1;
                }
            }
        }
        depth++;
        __syncthreads();
    } while (changed);
}
