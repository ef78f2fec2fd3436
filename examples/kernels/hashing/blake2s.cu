// BLAKE2s-256 (RFC 7693) of messages of at most 64 bytes; four threads share a message, a column each.
__constant__ unsigned char sigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};
__constant__ unsigned iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

__device__ unsigned rotr(unsigned x, int n) { return __funnelshift_r(x, x, n); }

__device__ void mix(unsigned &a, unsigned &b, unsigned &c, unsigned &d, unsigned x, unsigned y)
{
    a += b + x;
    d = rotr(d ^ a, 16);
    c += d;
    b = rotr(b ^ c, 12);
    a += b + y;
    d = rotr(d ^ a, 8);
    c += d;
    b = rotr(b ^ c, 7);
}

extern "C" __global__ void blake2s(const unsigned *messages, unsigned *digests, int length)
{
    int column = threadIdx.x;
    const unsigned *m = messages + blockIdx.x * 16;
    __shared__ unsigned v[16];
    __shared__ unsigned h[8];
    h[column] = iv[column];
    h[column + 4] = iv[column + 4];
    if (column == 0)
        h[0] ^= 0x01010020u;
    __syncthreads();
    v[column] = h[column];
    v[column + 4] = h[column + 4];
    v[column + 8] = iv[column];
    v[column + 12] = iv[column + 4];
    if (column == 0)
        v[12] ^= length;
    if (column == 2)
        v[14] = ~v[14];
    __syncthreads();
    for (int round = 0; round < 10; round++) {
        const unsigned char *s = sigma[round];
        mix(v[column], v[column + 4], v[column + 8], v[column + 12], m[s[2 * column]], m[s[2 * column + 1]]);
        __syncthreads();
        mix(v[column], v[4 + (column + 1) % 4], v[8 + (column + 2) % 4], v[12 + (column + 3) % 4],
            m[s[8 + 2 * column]], m[s[9 + 2 * column]]);
        __syncthreads();
    }
    digests[blockIdx.x * 8 + column] = h[column] ^ v[column] ^ v[column + 8];
    digests[blockIdx.x * 8 + column + 4] = h[column + 4] ^ v[column + 4] ^ v[column + 12];
}
