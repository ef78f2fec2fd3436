// Fletcher's checksum of 16 bits: two running sums modulo 255.
extern "C" __global__ void fletcher16(const unsigned char *data, unsigned short *sums, const int *lengths,
                                      int width)
{
    const unsigned char *row = data + blockIdx.x * width;
    unsigned short a = 0, b = 0;
    for (int i = 0; i < lengths[blockIdx.x]; i++) {
        a = (a + row[i]) % 255;
        b = (b + a) % 255;
    }
    sums[blockIdx.x] = (unsigned short)(b << 8 | a);
}
