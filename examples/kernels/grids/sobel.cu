// Sobel gradients of a picture with clamped borders: |gx| + |gy|, saturated to a byte.
__device__ int pixel(const unsigned char *image, int x, int y, int width, int height)
{
    x = min(max(x, 0), width - 1);
    y = min(max(y, 0), height - 1);
    return image[y * width + x];
}

extern "C" __global__ void sobel(const unsigned char *image, unsigned char *edges, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
#define P(dx, dy) pixel(image, x + (dx), y + (dy), width, height)
    int gx = P(1, -1) + 2 * P(1, 0) + P(1, 1) - P(-1, -1) - 2 * P(-1, 0) - P(-1, 1);
    int gy = P(-1, 1) + 2 * P(0, 1) + P(1, 1) - P(-1, -1) - 2 * P(0, -1) - P(1, -1);
#undef P
    edges[y * width + x] = min(abs(gx) + abs(gy), 255);
}
