// Connected components: the smallest label spreads over the edges, with pointer jumping, until nothing
// changes.
extern "C" __global__ void components_labels(const int2 *edges, int m, int *label, int n)
{
    for (int v = threadIdx.x; v < n; v += blockDim.x)
        label[v] = v;
    __syncthreads();
    int changed;
    do {
        changed = 0;
        for (int e = threadIdx.x; e < m; e += blockDim.x) {
            int2 edge = edges[e];
            int a = label[edge.x], b = label[edge.y];
            if (a == b)
                continue;
            changed = 1;
            atomicMin(&label[max(a, b)], min(a, b));
            atomicMin(&label[edge.x], min(a, b));
            atomicMin(&label[edge.y], min(a, b));
        }
        __syncthreads();
        for (int v = threadIdx.x; v < n; v += blockDim.x)
            while (label[v] != label[label[v]])
                label[v] = label[label[v]];
        changed = __syncthreads_or(changed);
    } while (changed);
}
