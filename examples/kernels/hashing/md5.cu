// MD5 (RFC 1321) of one padded block per thread, with the four round functions behind a switch.
__constant__ unsigned sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};
__constant__ unsigned char shifts[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

extern "C" __global__ void md5(const uint4 *blocks, uint4 *digests)
{
    unsigned m[16];
    for (int i = 0; i < 4; i++) {
        uint4 quad = blocks[4 * threadIdx.x + i];
        m[4 * i] = quad.x;
        m[4 * i + 1] = quad.y;
        m[4 * i + 2] = quad.z;
        m[4 * i + 3] = quad.w;
    }
    uint4 s = make_uint4(0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u);
    const uint4 start = s;
    for (int i = 0; i < 64; i++) {
        unsigned f;
        int g;
        if (i < 16) {
            f = (s.y & s.z) | (~s.y & s.w);
            g = i;
        } else if (i < 32) {
            f = (s.w & s.y) | (~s.w & s.z);
            g = (5 * i + 1) % 16;
        } else if (i < 48) {
            f = s.y ^ s.z ^ s.w;
            g = (3 * i + 5) % 16;
        } else {
            f = s.z ^ (s.y | ~s.w);
            g = (7 * i) % 16;
        }
        f += s.x + sines[i] + m[g];
        int r = shifts[i / 16 * 4 + i % 4];
        s.x = s.w;
        s.w = s.z;
        s.z = s.y;
        s.y += (f << r) | (f >> (32 - r));
    }
    s.x += start.x;
    s.y += start.y;
    s.z += start.z;
    s.w += start.w;
    digests[threadIdx.x] = s;
}
