// Philox 4x32-10: a counter-based generator, ten rounds of high and low products.
#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u

__device__ uint4 philox_round(uint4 counter, uint2 key)
{
    unsigned hi0 = __umulhi(PHILOX_M0, counter.x), lo0 = PHILOX_M0 * counter.x;
    unsigned hi1 = __umulhi(PHILOX_M1, counter.z), lo1 = PHILOX_M1 * counter.z;
    return make_uint4(hi1 ^ counter.y ^ key.x, lo1, hi0 ^ counter.w ^ key.y, lo0);
}

extern "C" __global__ void philox4x32(uint4 *out, unsigned long long offset, unsigned stream, unsigned key0,
                                      unsigned key1)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long position = offset + i;
    uint4 counter = make_uint4((unsigned)position, (unsigned)(position >> 32), stream, 0);
    uint2 key = make_uint2(key0, key1);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        counter = philox_round(counter, key);
        key.x += PHILOX_W0;
        key.y += PHILOX_W1;
    }
    out[i] = counter;
}
