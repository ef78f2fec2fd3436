// The S-box of AES from its definition, inverses in GF(2^8) and an affine map, and the mixing of columns with
// it.
__device__ unsigned char multiply(unsigned char a, unsigned char b)
{
    unsigned char product = 0;
    while (b) {
        if (b & 1)
            product ^= a;
        a = (unsigned char)(a << 1) ^ (a & 0x80 ? 0x1b : 0);
        b >>= 1;
    }
    return product;
}

extern "C" __global__ void aes_sbox(unsigned char *sbox, const uchar4 *columns, uchar4 *mixed)
{
    int t = threadIdx.x;
    for (int x = t; x < 256; x += blockDim.x) {
        unsigned char inverse = 1, base = x;
        for (int e = 254; e; e >>= 1) {
            if (e & 1)
                inverse = multiply(inverse, base);
            base = multiply(base, base);
        }
        unsigned turned = inverse | inverse << 8;
        sbox[x] = (unsigned char)(0x63 ^ inverse ^ turned >> 7 ^ turned >> 6 ^ turned >> 5 ^ turned >> 4);
    }
    __syncthreads();
    uchar4 c = columns[t], s = make_uchar4(sbox[c.x], sbox[c.y], sbox[c.z], sbox[c.w]);
    uchar4 m;
    m.x = multiply(2, s.x) ^ multiply(3, s.y) ^ s.z ^ s.w;
    m.y = s.x ^ multiply(2, s.y) ^ multiply(3, s.z) ^ s.w;
    m.z = s.x ^ s.y ^ multiply(2, s.z) ^ multiply(3, s.w);
    m.w = multiply(3, s.x) ^ s.y ^ s.z ^ multiply(2, s.w);
    mixed[t] = m;
}
