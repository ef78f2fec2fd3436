// XXH64 of strings of aligned 64-bit words.
typedef unsigned long long u64;

static const u64 P1 = 0x9E3779B185EBCA87ull;
static const u64 P2 = 0xC2B2AE3D27D4EB4Full;
static const u64 P3 = 0x165667B19E3779F9ull;
static const u64 P4 = 0x85EBCA77C2B2AE63ull;
static const u64 P5 = 0x27D4EB2F165667C5ull;

template <int R>
__device__ u64 rotl(u64 x)
{
    return (x << R) | (x >> (64 - R));
}

__device__ u64 round64(u64 accumulator, u64 input)
{
    return rotl<31>(accumulator + input * P2) * P1;
}

extern "C" __global__ void xxhash64(const u64 *data, u64 *hashes, int words, u64 seed)
{
    const u64 *p = data + (blockIdx.x * blockDim.x + threadIdx.x) * words;
    u64 h = seed + P5;
    int i = 0;
    if (words >= 4) {
        u64 v[4] = {seed + P1 + P2, seed + P2, seed, seed - P1};
        for (; i + 4 <= words; i += 4)
            for (int k = 0; k < 4; k++)
                v[k] = round64(v[k], p[i + k]);
        h = rotl<1>(v[0]) + rotl<7>(v[1]) + rotl<12>(v[2]) + rotl<18>(v[3]);
        for (int k = 0; k < 4; k++)
            h = (h ^ round64(0, v[k])) * P1 + P4;
    }
    h += (u64)words * 8;
    for (; i < words; i++)
        h = rotl<27>(h ^ round64(0, p[i])) * P1 + P4;
    h ^= h >> 33;
    h *= P2;
    h ^= h >> 29;
    h *= P3;
    h ^= h >> 32;
    hashes[blockIdx.x * blockDim.x + threadIdx.x] = h;
}
