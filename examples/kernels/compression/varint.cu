// Zigzag and variable-length bytes of differences between neighbours, a row a thread, and the way back.
extern "C" __global__ void varint(const int *values, int columns, unsigned char *bytes, int room, int *sizes,
                                  int *back)
{
    int t = threadIdx.x;
    const int *row = values + t * columns;
    unsigned char *out = bytes + t * room;
    int size = 0, previous = 0;
    for (int k = 0; k < columns; k++) {
        int delta = (int)((unsigned)row[k] - (unsigned)previous);
        previous = row[k];
        unsigned code = (unsigned)delta << 1 ^ (unsigned)(delta >> 31);
        for (; code >= 0x80; code >>= 7)
            out[size++] = (unsigned char)(code | 0x80);
        out[size++] = (unsigned char)code;
    }
    sizes[t] = size;
    unsigned sum = 0;
    for (int k = 0, p = 0; k < columns; k++) {
        unsigned code = 0;
        int shift = 0;
        unsigned char byte;
        do {
            byte = out[p++];
            code |= (unsigned)(byte & 0x7f) << shift;
            shift += 7;
        } while (byte & 0x80);
        sum += (code >> 1) ^ (0u - (code & 1));
        back[t * columns + k] = (int)sum;
    }
}
