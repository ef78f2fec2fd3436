// An elementary cellular automaton by number: a cell a thread, a generation a row, any rule.
extern "C" __global__ void elementary_automaton(unsigned char *history, int generations, unsigned rule)
{
    __shared__ unsigned char line[2][64];
    int i = threadIdx.x, n = blockDim.x;
    line[0][i] = history[i];
    for (int g = 1; g < generations; g++) {
        __syncthreads();
        const unsigned char *old = line[(g - 1) & 1];
        unsigned pattern = old[i == 0 ? n - 1 : i - 1] << 2 | old[i] << 1 | old[i == n - 1 ? 0 : i + 1];
        unsigned char cell = rule >> pattern & 1;
        line[g & 1][i] = cell;
        history[g * n + i] = cell;
    }
}
