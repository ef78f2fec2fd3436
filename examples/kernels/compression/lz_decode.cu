// Decoding of a byte stream of literals and copies (a token's high nibble counts literals, its low one a
// copy's length from four on, a byte for the distance), a stream a thread.
extern "C" __global__ void lz_decode(const unsigned char *streams, int room_in, const int *sizes,
                                     unsigned char *out, int room,
                                     int *lengths)
{
    const unsigned char *p = streams + threadIdx.x * room_in, *end = p + sizes[threadIdx.x];
    unsigned char *begin = out + threadIdx.x * room, *q = begin;
    while (p < end) {
        int token = *p++;
        int literals = token >> 4, copy = token & 15;
        if (literals == 15) {
            int more;
            do {
                more = *p++;
                literals += more;
            } while (more == 255);
        }
        while (literals-- > 0)
            *q++ = *p++;
        if (p >= end)
            break;
        const unsigned char *from = q - *p++;
        for (int k = 0; k < copy + 4; k++)
            *q++ = *from++;
    }
    lengths[threadIdx.x] = (int)(q - begin);
}
