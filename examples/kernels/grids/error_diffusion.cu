// Floyd and Steinberg's error diffusion, a picture a thread, with two rows of errors in local memory.
#define MAX_WIDTH 16

extern "C" __global__ void error_diffusion(const unsigned char *pictures, unsigned char *out, int width,
                                           int height)
{
    int base = threadIdx.x * width * height;
    short error[2][MAX_WIDTH + 2];
    for (int k = 0; k < MAX_WIDTH + 2; k++)
        error[0][k] = error[1][k] = 0;
    for (int y = 0; y < height; y++) {
        short *here = error[y & 1], *below = error[~y & 1];
        for (int k = 0; k < width + 2; k++)
            below[k] = 0;
        for (int x = 0; x < width; x++) {
            int value = pictures[base + y * width + x] + here[x + 1] / 16;
            int white = value >= 128;
            int rest = value - (white ? 255 : 0);
            out[base + y * width + x] = white;
            here[x + 2] += 7 * rest;
            below[x] += 3 * rest;
            below[x + 1] += 5 * rest;
            below[x + 2] += rest;
        }
    }
}
