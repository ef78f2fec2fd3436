// Canonical Huffman codes, a stream a thread: the code of a length is compared with the first of that length.
#define MAX_BITS 8

extern "C" __global__ void huffman_decode(const unsigned char *counts, const unsigned char *symbols,
                                          const unsigned *streams,
                                          int words, const int *lengths, unsigned char *out, int room)
{
    const unsigned *bits = streams + threadIdx.x * words;
    unsigned char *text = out + threadIdx.x * room;
    int position = 0;
    for (int i = 0; i < lengths[threadIdx.x]; i++) {
        int code = 0, first = 0, index = 0;
        for (int length = 1; length <= MAX_BITS; length++) {
            code |= bits[position >> 5] >> (position & 31) & 1;
            position++;
            int count = counts[length];
            if (code - count < first) {
                text[i] = symbols[index + (code - first)];
                break;
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
    }
}
