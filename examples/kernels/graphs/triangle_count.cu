// Triangles of a graph of at most 32 nodes with rows of bits: per node and in all.
extern "C" __global__ void triangle_count(const unsigned *rows, int n, int *per_node, int *total)
{
    int v = threadIdx.x;
    int mine = 0;
    if (v < n) {
        unsigned row = rows[v];
        for (unsigned rest = row; rest; rest &= rest - 1)
            mine += __popc(row & rows[__ffs(rest) - 1]);
        per_node[v] = mine / 2;
    }
    for (int offset = 16; offset > 0; offset >>= 1)
        mine += __shfl_down_sync(0xffffffffu, mine, offset);
    if (v == 0)
        *total = mine / 6;
}
