// A summed-area table: prefix sums along rows, then along columns; then sums of boxes by four look-ups.
extern "C" __global__ void integral_image(const unsigned char *image, unsigned *table, int width, int height,
                                          const uchar4 *boxes,
                                          unsigned *sums, int count)
{
    int t = threadIdx.x;
    if (t < height) {
        unsigned sum = 0;
        for (int x = 0; x < width; x++) {
            sum += image[t * width + x];
            table[t * width + x] = sum;
        }
    }
    __syncthreads();
    if (t < width)
        for (int y = 1; y < height; y++)
            table[y * width + t] += table[(y - 1) * width + t];
    __syncthreads();
    if (t < count) {
        uchar4 box = boxes[t];
        auto corner = [=](int x, int y) { return x < 0 || y < 0 ? 0u : table[y * width + x]; };
        int x0 = box.x - 1, y0 = box.y - 1, x1 = box.z, y1 = box.w;
        sums[t] = corner(x1, y1) - corner(x0, y1) - corner(x1, y0) + corner(x0, y0);
    }
}
