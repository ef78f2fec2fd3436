// The moves of Reversi's player on bit boards, by shifts that propagate over the other's stones in eight
// directions.
typedef unsigned long long u64;

template <int SHIFT>
__device__ u64 shifted(u64 x)
{
    return SHIFT > 0 ? x << (SHIFT > 0 ? SHIFT : 0) : x >> (SHIFT < 0 ? -SHIFT : 0);
}

template <int SHIFT>
__device__ u64 moves(u64 own, u64 other, u64 empty, u64 mask)
{
    u64 flips = shifted<SHIFT>(own) & mask & other;
    for (int i = 0; i < 5; i++)
        flips |= shifted<SHIFT>(flips) & mask & other;
    return shifted<SHIFT>(flips) & mask & empty;
}

extern "C" __global__ void reversi_moves(const ulonglong2 *boards, u64 *legal, int *mobility)
{
    u64 own = boards[threadIdx.x].x, other = boards[threadIdx.x].y;
    u64 empty = ~(own | other);
    const u64 all = ~0ull, not_a = 0xfefefefefefefefeull, not_h = 0x7f7f7f7f7f7f7f7full;
    u64 result = moves<8>(own, other, empty, all) | moves<-8>(own, other, empty, all);
    result |= moves<1>(own, other, empty, not_a) | moves<-1>(own, other, empty, not_h);
    result |= moves<9>(own, other, empty, not_a) | moves<-9>(own, other, empty, not_h);
    result |= moves<-7>(own, other, empty, not_a) | moves<7>(own, other, empty, not_h);
    legal[threadIdx.x] = result;
    mobility[threadIdx.x] = __popcll(result);
}
