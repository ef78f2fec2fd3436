// RGB to luma and chroma in fixed point (ITU-R BT.601), to 16 bits a pixel, and back to eight bits a channel.
__device__ unsigned char clip(int x) { return x < 0 ? 0 : x > 255 ? 255 : x; }

extern "C" __global__ void color_convert(const unsigned *pixels, uchar4 *ycc, unsigned short *rgb565,
                                         uchar4 *back)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned p = pixels[i];
    int r = p & 255, g = p >> 8 & 255, b = p >> 16 & 255;
    int y = (66 * r + 129 * g + 25 * b + 128) >> 8;
    int u = (-38 * r - 74 * g + 112 * b + 128) >> 8;
    int v = (112 * r - 94 * g - 18 * b + 128) >> 8;
    ycc[i] = make_uchar4(y + 16, u + 128, v + 128, p >> 24);
    rgb565[i] = (unsigned short)((r >> 3) << 11 | (g >> 2) << 5 | b >> 3);
    int c = 298 * y;
    back[i] = make_uchar4(clip((c + 409 * v + 128) >> 8), clip((c - 100 * u - 208 * v + 128) >> 8),
                          clip((c + 516 * u + 128) >> 8), 255);
}
