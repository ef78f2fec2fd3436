// The weight of a minimum spanning forest by Boruvka: cheapest edges by a packed 64-bit atomic minimum, then
// components are hooked together and flattened.
#define NODES 32

extern "C" __global__ void boruvka_round(const int *from, const int *to, const int *weight, int m, int n,
                                         unsigned char *chosen, int *total)
{
    __shared__ int component[NODES];
    __shared__ unsigned long long cheapest[NODES];
    int v = threadIdx.x;
    component[v] = v;
    if (v == 0)
        *total = 0;
    for (int e = v; e < m; e += blockDim.x)
        chosen[e] = 0;
    while (true) {
        cheapest[v] = ~0ull;
        __syncthreads();
        for (int e = v; e < m; e += blockDim.x) {
            int a = component[from[e]], b = component[to[e]];
            if (a == b)
                continue;
            unsigned long long key = (unsigned long long)weight[e] << 32 | e;
            atomicMin(&cheapest[a], key);
            atomicMin(&cheapest[b], key);
        }
        __syncthreads();
        bool root = v < n && component[v] == v && cheapest[v] != ~0ull;
        int target = v, edge = 0;
        if (root) {
            edge = (int)(cheapest[v] & 0xffffffffu);
            int a = component[from[edge]], b = component[to[edge]];
            target = a == v ? b : a;
            // Two components that chose each other's edge: the smaller one stays the root.
            if (cheapest[target] == cheapest[v] && v < target)
                target = v;
        }
        if (!__syncthreads_or(root))
            break;
        if (root && target != v) {
            component[v] = target;
            chosen[edge] = 1;
            atomicAdd(total, weight[edge]);
        }
        __syncthreads();
        for (int k = 0; k < 5; k++) {
            int above = component[component[v]];
            __syncthreads();
            component[v] = above;
            __syncthreads();
        }
    }
}
