// xoshiro256** seeded by splitmix64 from one number per thread.
typedef unsigned long long u64;

__device__ u64 splitmix64(u64 &x)
{
    u64 z = (x += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

__device__ u64 rotl(u64 x, int k) { return (x << k) | (x >> (64 - k)); }

extern "C" __global__ void xoshiro256(const u64 *seeds, u64 *out, int draws)
{
    u64 seed = seeds[threadIdx.x];
    u64 s[4];
    for (int i = 0; i < 4; i++)
        s[i] = splitmix64(seed);
    for (int i = 0; i < draws; i++) {
        out[threadIdx.x * draws + i] = rotl(s[1] * 5, 7) * 9;
        u64 t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotl(s[3], 45);
    }
}
