// SipHash-2-4 of messages of whole 64-bit words, keyed.
typedef unsigned long long u64;

struct State {
    u64 v0, v1, v2, v3;

    __device__ static u64 rotl(u64 x, int b) { return (x << b) | (x >> (64 - b)); }

    __device__ void round()
    {
        v0 += v1;
        v1 = rotl(v1, 13) ^ v0;
        v0 = rotl(v0, 32);
        v2 += v3;
        v3 = rotl(v3, 16) ^ v2;
        v0 += v3;
        v3 = rotl(v3, 21) ^ v0;
        v2 += v1;
        v1 = rotl(v1, 17) ^ v2;
        v2 = rotl(v2, 32);
    }

    __device__ void absorb(u64 m)
    {
        v3 ^= m;
        round();
        round();
        v0 ^= m;
    }
};

extern "C" __global__ void siphash(const u64 *messages, u64 *tags, int words, u64 key0, u64 key1)
{
    State s = {key0 ^ 0x736f6d6570736575ull, key1 ^ 0x646f72616e646f6dull, key0 ^ 0x6c7967656e657261ull,
               key1 ^ 0x7465646279746573ull};
    for (int i = 0; i < words; i++)
        s.absorb(messages[threadIdx.x * words + i]);
    s.absorb((u64)(words * 8) << 56);
    s.v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        s.round();
    tags[threadIdx.x] = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
