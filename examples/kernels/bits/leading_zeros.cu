// Leading zeros, first ones, logarithms and powers of two, for 32 and 64 bits.
__device__ unsigned next_power_of_two(unsigned x)
{
    x--;
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    return x + 1;
}

extern "C" __global__ void leading_zeros(const unsigned long long *in, int *out, unsigned *power)
{
    int i = threadIdx.x;
    unsigned long long x = in[i];
    unsigned low = (unsigned)x;
    int *row = out + 6 * i;
    row[0] = __clz(low);
    row[1] = __clzll(x);
    row[2] = __ffs(low);
    row[3] = __ffsll(x);
    row[4] = low ? 31 - __clz(low) : -1;
    row[5] = __popcll(x) == 1;
    power[i] = next_power_of_two(low);
}
