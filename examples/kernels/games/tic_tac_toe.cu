// The value of positions of noughts and crosses for the player to move, by minimax with a stack; a position a
// thread.
__device__ int line_of(int a, int b, int c) { return a && a == b && b == c ? a : 0; }

extern "C" __global__ void tic_tac_toe(const unsigned char *positions, signed char *value)
{
    // Five of the nine squares are open at most.
    unsigned char board[9], order[6], at[6];
    signed char best[7];
    int empty = 0, crosses = 0, noughts = 0;
    for (int k = 0; k < 9; k++) {
        board[k] = positions[9 * threadIdx.x + k];
        crosses += board[k] == 1;
        noughts += board[k] == 2;
        empty += board[k] == 0;
    }
    int depth = 0;
    int turn = crosses == noughts ? 1 : 2;
    best[0] = -2;
    order[0] = 0;
    int result = 0;
    bool enter = true;
    while (depth >= 0) {
        if (enter) {
            int w = 0;
            for (int k = 0; k < 3; k++) {
                w |= line_of(board[3 * k], board[3 * k + 1], board[3 * k + 2]);
                w |= line_of(board[k], board[k + 3], board[k + 6]);
            }
            w |= line_of(board[0], board[4], board[8]) | line_of(board[2], board[4], board[6]);
            if (w || depth == empty) {
                result = w == 0 ? 0 : w == turn ? 1 : -1;
                enter = false;
                depth--;
                turn = 3 - turn;
                continue;
            }
            best[depth] = -2;
            order[depth] = 0;
        } else {
            board[at[depth]] = 0;
            best[depth] = max((int)best[depth], -result);
        }
        int square = order[depth];
        while (square < 9 && board[square])
            square++;
        if (square == 9) {
            result = best[depth];
            enter = false;
            depth--;
        } else {
            at[depth] = square;
            order[depth] = square + 1;
            board[square] = turn;
            enter = true;
            depth++;
        }
        turn = 3 - turn;
    }
    value[threadIdx.x] = result;
}
