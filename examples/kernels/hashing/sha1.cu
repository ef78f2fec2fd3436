// SHA-1 of one block per thread: messages of up to 55 bytes, padded by the host into sixteen words.
__device__ __forceinline__ unsigned rotl(unsigned x, int n)
{
    return __funnelshift_l(x, x, n);
}

extern "C" __global__ void sha1(const unsigned *blocks, unsigned *digests)
{
    const int t = threadIdx.x;
    unsigned w[80];
    for (int i = 0; i < 16; i++)
        w[i] = blocks[16 * t + i];
    for (int i = 16; i < 80; i++)
        w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);

    unsigned a = 0x67452301u, b = 0xEFCDAB89u, c = 0x98BADCFEu, d = 0x10325476u, e = 0xC3D2E1F0u;
    for (int i = 0; i < 80; i++) {
        unsigned f, k;
        switch (i / 20) {
        case 0:
            f = (b & c) | (~b & d);
            k = 0x5A827999u;
            break;
        case 1:
            f = b ^ c ^ d;
            k = 0x6ED9EBA1u;
            break;
        case 2:
            f = (b & c) | (b & d) | (c & d);
            k = 0x8F1BBCDCu;
            break;
        default:
            f = b ^ c ^ d;
            k = 0xCA62C1D6u;
        }
        unsigned next = rotl(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotl(b, 30);
        b = a;
        a = next;
    }
    digests[5 * t] = a + 0x67452301u;
    digests[5 * t + 1] = b + 0xEFCDAB89u;
    digests[5 * t + 2] = c + 0x98BADCFEu;
    digests[5 * t + 3] = d + 0x10325476u;
    digests[5 * t + 4] = e + 0xC3D2E1F0u;
}
