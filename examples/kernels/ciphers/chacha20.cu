// The ChaCha20 block function (RFC 8439) as a key stream over words, a block of sixteen words a thread.
__device__ __forceinline__ unsigned rotl(unsigned x, int n) { return __funnelshift_l(x, x, n); }

#define QUARTER_ROUND(a, b, c, d)                                                                  \
    a += b; d = rotl(d ^ a, 16);                                                                   \
    c += d; b = rotl(b ^ c, 12);                                                                   \
    a += b; d = rotl(d ^ a, 8);                                                                    \
    c += d; b = rotl(b ^ c, 7)

extern "C" __global__ void chacha20(const unsigned *key, const unsigned *nonce, unsigned counter,
                                    unsigned *data, int words)
{
    unsigned block = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    for (int i = 0; i < 8; i++)
        s[4 + i] = key[i];
    s[12] = counter + block;
    for (int i = 0; i < 3; i++)
        s[13 + i] = nonce[i];
    unsigned x[16];
#pragma unroll
    for (int i = 0; i < 16; i++)
        x[i] = s[i];
    for (int round = 0; round < 10; round++) {
        QUARTER_ROUND(x[0], x[4], x[8], x[12]);
        QUARTER_ROUND(x[1], x[5], x[9], x[13]);
        QUARTER_ROUND(x[2], x[6], x[10], x[14]);
        QUARTER_ROUND(x[3], x[7], x[11], x[15]);
        QUARTER_ROUND(x[0], x[5], x[10], x[15]);
        QUARTER_ROUND(x[1], x[6], x[11], x[12]);
        QUARTER_ROUND(x[2], x[7], x[8], x[13]);
        QUARTER_ROUND(x[3], x[4], x[9], x[14]);
    }
    for (int i = 0; i < 16; i++)
        if (16 * block + i < words)
            data[16 * block + i] ^= x[i] + s[i];
}
