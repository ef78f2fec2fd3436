// MurmurHash3 x86 32 of byte strings of one length, with the tail in a switch that falls through.
__device__ unsigned scramble(unsigned k)
{
    k *= 0xcc9e2d51u;
    k = (k << 15) | (k >> 17);
    return k * 0x1b873593u;
}

extern "C" __global__ void murmur3(const unsigned char *keys, unsigned *hashes, int length, unsigned seed)
{
    const unsigned char *key = keys + threadIdx.x * length;
    unsigned h = seed;
    for (int i = 0; i < length / 4; i++) {
        unsigned k = 0;
        for (int j = 3; j >= 0; j--)
            k = k << 8 | key[4 * i + j];
        h ^= scramble(k);
        h = (h << 13) | (h >> 19);
        h = h * 5 + 0xe6546b64u;
    }
    const unsigned char *tail = key + length / 4 * 4;
    unsigned k = 0;
    switch (length & 3) {
    case 3:
        k ^= tail[2] << 16;
    case 2:
        k ^= tail[1] << 8;
    case 1:
        k ^= tail[0];
        h ^= scramble(k);
    }
    h ^= length;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    hashes[threadIdx.x] = h;
}
