// Bit boards of 64 squares: knights' and kings' attacks by shifts, with the squares that both attack.
typedef unsigned long long u64;

#define NOT_A 0xfefefefefefefefeull
#define NOT_AB 0xfcfcfcfcfcfcfcfcull
#define NOT_H 0x7f7f7f7f7f7f7f7full
#define NOT_GH 0x3f3f3f3f3f3f3f3full

__device__ u64 knights(u64 b)
{
    u64 east = b << 1 & NOT_A, west = b >> 1 & NOT_H;
    u64 attacks = (east | west) << 16 | (east | west) >> 16;
    east = b << 2 & NOT_AB;
    west = b >> 2 & NOT_GH;
    return attacks | (east | west) << 8 | (east | west) >> 8;
}

__device__ u64 kings(u64 b)
{
    u64 sides = (b << 1 & NOT_A) | (b >> 1 & NOT_H);
    b |= sides;
    return sides | b << 8 | b >> 8;
}

extern "C" __global__ void knight_attacks(const u64 *pieces, u64 *by_knights, u64 *by_kings, int *common)
{
    int i = threadIdx.x;
    by_knights[i] = knights(pieces[i]);
    by_kings[i] = kings(pieces[i]);
    common[i] = __popcll(by_knights[i] & by_kings[i]);
}
