// XXH32 of byte strings of one length, of any length: four lanes while 16 bytes are left, then words, then
// bytes.
#define PRIME1 2654435761u
#define PRIME2 2246822519u
#define PRIME3 3266489917u
#define PRIME4 668265263u
#define PRIME5 374761393u

__device__ unsigned rotl(unsigned x, int r) { return (x << r) | (x >> (32 - r)); }

__device__ unsigned read32(const unsigned char *p)
{
    return p[0] | p[1] << 8 | p[2] << 16 | (unsigned)p[3] << 24;
}

__device__ unsigned round32(unsigned accumulator, unsigned input)
{
    return rotl(accumulator + input * PRIME2, 13) * PRIME1;
}

extern "C" __global__ void xxhash32(const unsigned char *data, unsigned *hashes, int length, unsigned seed)
{
    const unsigned char *p = data + threadIdx.x * length;
    const unsigned char *end = p + length;
    unsigned h;
    if (length >= 16) {
        unsigned v1 = seed + PRIME1 + PRIME2, v2 = seed + PRIME2, v3 = seed, v4 = seed - PRIME1;
        do {
            v1 = round32(v1, read32(p));
            v2 = round32(v2, read32(p + 4));
            v3 = round32(v3, read32(p + 8));
            v4 = round32(v4, read32(p + 12));
            p += 16;
        } while (p <= end - 16);
        h = rotl(v1, 1) + rotl(v2, 7) + rotl(v3, 12) + rotl(v4, 18);
    } else {
        h = seed + PRIME5;
    }
    h += length;
    for (; p + 4 <= end; p += 4)
        h = rotl(h + read32(p) * PRIME3, 17) * PRIME4;
    while (p < end)
        h = rotl(h + *p++ * PRIME5, 11) * PRIME1;
    h ^= h >> 15;
    h *= PRIME2;
    h ^= h >> 13;
    h *= PRIME3;
    h ^= h >> 16;
    hashes[threadIdx.x] = h;
}
