// Rooks' and bishops' attacks on a board with blockers: o ^ (o - 2r) along lines, and walks along diagonals.
typedef unsigned long long u64;

__device__ u64 line_attacks(u64 occupied, u64 piece, u64 mask)
{
    u64 forward = occupied & mask;
    u64 reverse = __brevll(forward);
    forward -= 2 * piece;
    reverse -= 2 * __brevll(piece);
    return (forward ^ __brevll(reverse)) & mask;
}

extern "C" __global__ void rook_attacks(const unsigned char *squares, const u64 *occupied, u64 *rook,
                                        u64 *bishop)
{
    int i = threadIdx.x, square = squares[i], file = square & 7, rank = square >> 3;
    u64 piece = 1ull << square, board = occupied[i] & ~piece;
    u64 row = (0xffull << 8 * rank) & ~piece, column = (0x0101010101010101ull << file) & ~piece;
    rook[i] = line_attacks(board, piece, row) | line_attacks(board, piece, column);
    u64 diagonal = 0;
    for (int direction = 0; direction < 4; direction++) {
        int df = direction & 1 ? 1 : -1, dr = direction & 2 ? 1 : -1;
        for (int f = file + df, r = rank + dr; f >= 0 && r >= 0 && f < 8 && r < 8; f += df, r += dr) {
            u64 bit = 1ull << (8 * r + f);
            diagonal |= bit;
            if (board & bit)
                break;
        }
    }
    bishop[i] = diagonal;
}
