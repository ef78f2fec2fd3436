// Which nodes reach which, as rows of bits, by Warshall with one row a thread.
extern "C" __global__ void transitive_closure(unsigned long long *rows, int *pairs, int n)
{
    int v = threadIdx.x;
    unsigned long long row = rows[v];
    for (int k = 0; k < n; k++) {
        if (v == k)
            rows[k] = row;
        __syncthreads();
        if (row >> k & 1)
            row |= rows[k];
        __syncthreads();
    }
    rows[v] = row;
    atomicAdd(pairs, __popcll(row));
}
