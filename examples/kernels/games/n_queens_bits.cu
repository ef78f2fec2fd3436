// Solutions of the n queens puzzle: the first two queens come from the thread, the rest from a search with
// bits.
extern "C" __global__ void n_queens_bits(int n, unsigned *solutions)
{
    int first = blockIdx.x, second = threadIdx.x;
    unsigned all = (1u << n) - 1;
    unsigned columns[12], left[12], right[12], free[12];
    unsigned a = 1u << first, b = 1u << second;
    if (b & (a | a << 1 | a >> 1))
        return;
    int depth = 0;
    columns[0] = a | b;
    left[0] = (a << 1 | b) << 1;
    right[0] = (a >> 1 | b) >> 1;
    free[0] = all & ~(columns[0] | left[0] | right[0]);
    unsigned count = 0;
    while (depth >= 0) {
        if (free[depth] == 0) {
            depth--;
            continue;
        }
        unsigned queen = free[depth] & -free[depth];
        free[depth] ^= queen;
        if (depth + 3 == n) {
            count++;
            continue;
        }
        columns[depth + 1] = columns[depth] | queen;
        left[depth + 1] = (left[depth] | queen) << 1;
        right[depth + 1] = (right[depth] | queen) >> 1;
        depth++;
        free[depth] = all & ~(columns[depth] | left[depth] | right[depth]);
    }
    if (count)
        atomicAdd(solutions, count);
}
