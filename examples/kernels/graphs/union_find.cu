// Union and find with compare-and-swap: roots are hooked under smaller roots; then each vertex looks up its
// root.
__device__ int find_root(int *parent, int v)
{
    while (true) {
        int p = parent[v];
        if (p == v)
            return v;
        int above = parent[p];
        if (above != p)
            atomicCAS(&parent[v], p, above);
        v = p;
    }
}

__device__ bool unite(int *parent, int a, int b)
{
    for (;;) {
        a = find_root(parent, a);
        b = find_root(parent, b);
        if (a == b)
            return false;
        int low = min(a, b), high = max(a, b);
        if (atomicCAS(&parent[high], high, low) == high)
            return true;
    }
}

extern "C" __global__ void union_find(const int *from, const int *to, int m, int *root, int n, int *sets)
{
    __shared__ int parent[64];
    __shared__ int joins;
    for (int v = threadIdx.x; v < n; v += blockDim.x)
        parent[v] = v;
    if (threadIdx.x == 0)
        joins = 0;
    __syncthreads();
    for (int e = threadIdx.x; e < m; e += blockDim.x)
        if (unite(parent, from[e], to[e]))
            atomicAdd(&joins, 1);
    __syncthreads();
    for (int v = threadIdx.x; v < n; v += blockDim.x)
        root[v] = find_root(parent, v);
    if (threadIdx.x == 0)
        *sets = n - joins;
}
