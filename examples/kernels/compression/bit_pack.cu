// Numbers of a fixed width packed into a stream of words by atomic or, across word borders, and unpacked
// again.
extern "C" __global__ void bit_pack(const unsigned *values, int n, int width, unsigned *words, unsigned *back)
{
    int i = threadIdx.x;
    unsigned mask = width == 32 ? ~0u : (1u << width) - 1;
    if (i < n) {
        int bit = i * width, word = bit / 32, shift = bit % 32;
        unsigned long long field = (unsigned long long)(values[i] & mask) << shift;
        atomicOr(&words[word], (unsigned)field);
        if (shift + width > 32)
            atomicOr(&words[word + 1], (unsigned)(field >> 32));
    }
    __syncthreads();
    if (i < n) {
        int bit = i * width, word = bit / 32, shift = bit % 32;
        unsigned high = shift + width > 32 ? words[word + 1] : 0;
        back[i] = __funnelshift_r(words[word], high, shift) & mask;
    }
}
