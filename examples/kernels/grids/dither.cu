// Ordered dithering with Bayer's matrix, made from bits of the coordinates, to one bit a pixel by ballots.
extern "C" __global__ void dither(const unsigned char *grey, unsigned *bitmap)
{
    unsigned x = threadIdx.x, y = blockIdx.x;
    unsigned threshold = 0;
    for (int bit = 0; bit < 3; bit++)
        threshold = threshold << 2 | ((x ^ y) >> bit & 1) << 1 | (y >> bit & 1);
    bool white = grey[y * 32 + x] > threshold * 4 + 2;
    unsigned row = __ballot_sync(0xffffffffu, white);
    if (x == 0)
        bitmap[y] = row;
}
