// Four bytes in a word: sums that wrap, sums that saturate, absolute differences, averages, maxima; by hand.
#define HIGH 0x80808080u

__device__ unsigned add4(unsigned a, unsigned b) { return ((a & ~HIGH) + (b & ~HIGH)) ^ ((a ^ b) & HIGH); }

__device__ unsigned sub4(unsigned a, unsigned b) { return ((a | HIGH) - (b & ~HIGH)) ^ ((a ^ ~b) & HIGH); }

__device__ unsigned average4(unsigned a, unsigned b) { return (a & b) + (((a ^ b) & 0xfefefefeu) >> 1); }

// All ones in each byte where a >= b, unsigned: no borrow out of the byte.
__device__ unsigned not_less4(unsigned a, unsigned b)
{
    unsigned difference = (a | HIGH) - (b & ~HIGH);
    unsigned bit = ((a & ~b) | (~(a ^ b) & difference)) & HIGH;
    return (bit << 1) - (bit >> 7);
}

__device__ unsigned max4(unsigned a, unsigned b)
{
    unsigned mask = not_less4(a, b);
    return (a & mask) | (b & ~mask);
}

__device__ unsigned add_saturated4(unsigned a, unsigned b)
{
    unsigned sum = add4(a, b);
    return sum | ~not_less4(sum, a);
}

extern "C" __global__ void packed_bytes(const unsigned *a, const unsigned *b, unsigned *out)
{
    int i = threadIdx.x;
    unsigned x = a[i], y = b[i];
    unsigned top = max4(x, y), bottom = x ^ y ^ top;
    out[5 * i] = add4(x, y);
    out[5 * i + 1] = add_saturated4(x, y);
    out[5 * i + 2] = sub4(top, bottom);
    out[5 * i + 3] = average4(x, y);
    out[5 * i + 4] = top;
}
