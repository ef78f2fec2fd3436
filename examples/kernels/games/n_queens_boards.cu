// Which boards, one queen a row, are solutions, and how many pairs attack each other.
__device__ bool attack(int r0, int c0, int r1, int c1)
{
    return c0 == c1 || r1 - r0 == abs(c1 - c0);
}

extern "C" __global__ void n_queens_boards(const signed char *boards, int n, int *attacks,
                                           unsigned char *solved)
{
    const signed char *board = boards + (blockIdx.x * blockDim.x + threadIdx.x) * n;
    int pairs = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            if (attack(i, board[i], j, board[j]))
                pairs++;
    attacks[blockIdx.x * blockDim.x + threadIdx.x] = pairs;
    solved[blockIdx.x * blockDim.x + threadIdx.x] = !pairs;
}
