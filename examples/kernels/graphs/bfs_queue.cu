// Breadth-first search with a queue in shared memory: places by atomicAdd, visits by compare-and-swap.
#define CAPACITY 64

extern "C" __global__ void bfs_queue(const int *row_offsets, const int *neighbours, int *distance,
                                     int *reached, int n, int source)
{
    __shared__ int queue[2][CAPACITY];
    __shared__ int length[2];
    const int t = threadIdx.x;
    for (int v = t; v < n; v += blockDim.x)
        distance[v] = -1;
    if (t == 0) {
        queue[0][0] = source;
        length[0] = 1;
        length[1] = 0;
        *reached = 0;
    }
    __syncthreads();
    if (t == 0)
        distance[source] = 0;
    __syncthreads();
    for (int now = 0, depth = 1; length[now] > 0; now ^= 1, depth++) {
        for (int k = t; k < length[now]; k += blockDim.x) {
            int v = queue[now][k];
            for (int e = row_offsets[v]; e < row_offsets[v + 1]; e++)
                if (atomicCAS(&distance[neighbours[e]], -1, depth) == -1)
                    queue[now ^ 1][atomicAdd(&length[now ^ 1], 1)] = neighbours[e];
        }
        __syncthreads();
        if (t == 0) {
            *reached += length[now];
            length[now] = 0;
        }
        __syncthreads();
    }
}
