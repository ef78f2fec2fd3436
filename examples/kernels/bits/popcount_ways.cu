// Five ways to count one bits, which must agree; the result holds the count and how many ways found it.
__device__ int by_kernighan(unsigned x)
{
    int n = 0;
    for (; x; n++)
        x &= x - 1;
    return n;
}

__device__ int by_halves(unsigned x)
{
    x = x - ((x >> 1) & 0x55555555u);
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    return (((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u) >> 24;
}

__device__ int by_modulus(unsigned x)
{
    unsigned y = (x >> 1) & 033333333333u;
    y = x - y - ((y >> 1) & 033333333333u);
    return ((y + (y >> 3)) & 030707070707u) % 63;
}

__device__ int by_table(unsigned x)
{
    const unsigned long long nibbles = 0x4332322132212110ull;
    int n = 0;
    for (int i = 0; i < 32; i += 4)
        n += nibbles >> 4 * (x >> i & 15) & 15;
    return n;
}

extern "C" __global__ void popcount_ways(const unsigned *in, int *counts, int *agree)
{
    unsigned x = in[threadIdx.x];
    int n = __popc(x);
    counts[threadIdx.x] = n;
    int same = (by_kernighan(x) == n) + (by_halves(x) == n) + (by_modulus(x) == n) + (by_table(x) == n);
    agree[threadIdx.x] = 1 + same;
}
