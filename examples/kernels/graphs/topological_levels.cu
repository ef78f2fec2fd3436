// The longest path to each node of an acyclic graph by Kahn's waves; nodes on cycles get -1.
extern "C" __global__ void topological_levels(const int *offsets, const int *targets, int n, int *levels)
{
    __shared__ int indegree[64], level[64];
    __shared__ unsigned char done[64];
    int v = threadIdx.x;
    indegree[v] = 0;
    level[v] = -1;
    done[v] = v >= n;
    __syncthreads();
    if (v < n)
        for (int e = offsets[v]; e < offsets[v + 1]; e++)
            atomicAdd(&indegree[targets[e]], 1);
    __syncthreads();
    for (int wave = 0;; wave++) {
        bool ready = !done[v] && indegree[v] == 0;
        if (!__syncthreads_or(ready))
            break;
        if (ready) {
            done[v] = 1;
            level[v] = wave;
            for (int e = offsets[v]; e < offsets[v + 1]; e++)
                atomicSub(&indegree[targets[e]], 1);
        }
        __syncthreads();
    }
    if (v < n)
        levels[v] = level[v];
}
