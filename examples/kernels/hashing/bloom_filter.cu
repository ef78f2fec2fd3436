// A Bloom filter of 256 bits: three hashes per key set bits with atomic or; then membership of queries.
__device__ __forceinline__ unsigned mix(unsigned key, unsigned salt)
{
    key = (key ^ salt) * 0x9E3779B1u;
    return key ^ (key >> 15);
}

extern "C" __global__ void bloom_filter(const unsigned *keys, int n, const unsigned *queries,
                                        unsigned char *hits, int m,
                                        unsigned *filter)
{
    int i = threadIdx.x;
    if (i < n)
        for (unsigned salt = 1; salt <= 3; salt++) {
            unsigned bit = mix(keys[i], salt) & 255;
            atomicOr(&filter[bit >> 5], 1u << (bit & 31));
        }
    __syncthreads();
    if (i < m) {
        bool present = true;
        for (unsigned salt = 1; salt <= 3 && present; salt++) {
            unsigned bit = mix(queries[i], salt) & 255;
            present = filter[bit >> 5] >> (bit & 31) & 1;
        }
        hits[i] = present;
    }
}
