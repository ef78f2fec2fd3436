// Whether filled boards obey Sudoku's rules: 27 threads check the rows, columns and boxes by bit masks.
extern "C" __global__ void sudoku_check(const unsigned char *boards, unsigned *broken)
{
    const unsigned char *board = boards + 81 * blockIdx.x;
    int unit = threadIdx.x % 9;
    unsigned seen = 0;
    for (int k = 0; k < 9; k++) {
        int row, column;
        switch (threadIdx.x / 9) {
        case 0:
            row = unit;
            column = k;
            break;
        case 1:
            row = k;
            column = unit;
            break;
        default:
            row = unit / 3 * 3 + k / 3;
            column = unit % 3 * 3 + k % 3;
        }
        seen |= 1u << board[row * 9 + column];
    }
    if (seen != 0x3fe)
        atomicOr(&broken[blockIdx.x], 1u << threadIdx.x);
}
