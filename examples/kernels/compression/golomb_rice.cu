// Rice codes read from a bit stream of 64-bit words: unary quotients by counting leading ones, then k bits.
extern "C" __global__ void golomb_rice(const unsigned long long *streams, int words, int k, unsigned *values,
                                       int count)
{
    const unsigned long long *stream = streams + blockIdx.x * words;
    unsigned *out = values + blockIdx.x * count;
    int position = 0;
    for (int i = 0; i < count; i++) {
        int quotient = 0;
        while (true) {
            int word = position >> 6, offset = position & 63;
            int ones = __clzll(~(stream[word] << offset));
            ones = min(ones, 64 - offset);
            quotient += ones;
            position += ones;
            if (ones < 64 - offset)
                break;
        }
        position++;
        unsigned rest = 0;
        for (int b = 0; b < k; b++, position++)
            rest = rest << 1 | (unsigned)(stream[position >> 6] >> (63 - (position & 63)) & 1);
        out[i] = (unsigned)quotient << k | rest;
    }
}
