// Connect four on bit boards of seven columns of seven bits: who has four in a line, and the columns that
// win.
__device__ bool four(unsigned long long b)
{
    const int directions[4] = {1, 7, 6, 8};
    for (int k = 0; k < 4; k++) {
        unsigned long long pairs = b & b >> directions[k];
        if (pairs & pairs >> 2 * directions[k])
            return true;
    }
    return false;
}

extern "C" __global__ void connect_four(const ulonglong2 *boards, signed char *winner,
                                        unsigned *winning_columns)
{
    int i = threadIdx.x;
    unsigned long long first = boards[i].x, second = boards[i].y;
    winner[i] = four(first) ? 1 : four(second) ? -1 : 0;
    unsigned columns = 0;
    for (int c = 0; c < 7; c++) {
        unsigned long long taken = (first | second) >> 7 * c & 63;
        if (taken == 63)
            continue;
        unsigned long long stone = (taken + 1) << 7 * c;
        if (four(first | stone))
            columns |= 1u << c;
    }
    winning_columns[i] = columns;
}
