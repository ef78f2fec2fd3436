// Shortest paths from one source with weights of both signs, edges in parallel; says if a negative cycle is
// there.
struct Edge {
    int from, to, weight;
};

extern "C" __global__ void bellman_ford(const Edge *edges, int m, long long *distance, int n, int source,
                                        int *negative)
{
    const long long far = 1ll << 60;
    for (int v = threadIdx.x; v < n; v += blockDim.x)
        distance[v] = v == source ? 0 : far;
    __syncthreads();
    bool relaxed = true;
    for (int round = 0; round < n && relaxed; round++) {
        bool mine = false;
        for (int e = threadIdx.x; e < m; e += blockDim.x) {
            const Edge edge = edges[e];
            long long d = distance[edge.from];
            if (d == far)
                continue;
            if (d + edge.weight < distance[edge.to]) {
                atomicMin(&distance[edge.to], d + edge.weight);
                mine = true;
            }
        }
        relaxed = __syncthreads_or(mine);
    }
    if (threadIdx.x == 0)
        *negative = relaxed;
}
