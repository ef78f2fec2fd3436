// Reversal of bits by the instruction and by swaps, of 8 to 64 bits, and of bytes.
template <typename T>
__device__ T reverse(T x)
{
    T result = 0;
    for (int i = 0; i < 8 * (int)sizeof(T); i++) {
        result = (T)(result << 1) | (T)(x & 1);
        x >>= 1;
    }
    return result;
}

extern "C" __global__ void bit_reverse(const unsigned long long *in, unsigned long long *wide,
                                       unsigned *narrow,
                                       unsigned short *half, unsigned char *byte, unsigned *swapped)
{
    int i = threadIdx.x;
    unsigned long long x = in[i];
    unsigned low = (unsigned)x;
    wide[i] = __brevll(x);
    narrow[i] = __brev(low) ^ reverse(low);
    half[i] = reverse((unsigned short)x);
    byte[i] = reverse((unsigned char)x);
    swapped[i] = __byte_perm(low, 0, 0x0123);
}
