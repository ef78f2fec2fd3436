// The class of five-card hands, from a straight flush (8) to nothing (0), by unary counts packed into 64
// bits, whose sum modulo 15 tells the pairs.
extern "C" __global__ void poker_hands(const unsigned char *cards, int *classes, int hands)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= hands)
        return;
    unsigned long long counts = 0;
    unsigned ranks = 0, suits = 0;
    for (int k = 0; k < 5; k++) {
        int card = cards[5 * i + k];
        int rank = card % 13;
        unsigned long long field = counts >> 4 * rank & 15;
        counts += (field + 1) << 4 * rank;
        ranks |= 1u << rank;
        suits |= 1u << card / 13;
    }
    bool flush = (suits & (suits - 1)) == 0;
    bool straight = ranks == 0x100f || (__popc(ranks) == 5 && ranks / (ranks & -ranks) == 31);
    int result;
    if (straight && flush)
        result = 8;
    else if (flush)
        result = 5;
    else if (straight)
        result = 4;
    else
        switch (counts % 15) {
        case 1:
            result = 7;
            break;
        case 10:
            result = 6;
            break;
        case 9:
            result = 3;
            break;
        case 7:
            result = 2;
            break;
        case 6:
            result = 1;
            break;
        default:
            result = 0;
        }
    classes[i] = result;
}
