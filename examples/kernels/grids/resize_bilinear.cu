// Bilinear scaling of a grey picture with weights of eight bits, any size to any size.
extern "C" __global__ void resize_bilinear(const unsigned char *in, int in_width, int in_height,
                                           unsigned char *out, int width,
                                           int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int sx = width > 1 ? x * (in_width - 1) * 256 / (width - 1) : 0;
    int sy = height > 1 ? y * (in_height - 1) * 256 / (height - 1) : 0;
    int x0 = sx >> 8, y0 = sy >> 8, fx = sx & 255, fy = sy & 255;
    int x1 = min(x0 + 1, in_width - 1), y1 = min(y0 + 1, in_height - 1);
    int top = in[y0 * in_width + x0] * (256 - fx) + in[y0 * in_width + x1] * fx;
    int bottom = in[y1 * in_width + x0] * (256 - fx) + in[y1 * in_width + x1] * fx;
    out[y * width + x] = (top * (256 - fy) + bottom * fy + 32768) >> 16;
}
