// The median of nine by the minimal exchange network, on a picture with a border of one that stays.
#define SORT2(a, b)                \
    do {                           \
        int low = min(a, b);       \
        b = max(a, b);             \
        a = low;                   \
    } while (0)

extern "C" __global__ void median_filter(const unsigned char *in, unsigned char *out, int width, int height)
{
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[y * width + x] = in[y * width + x];
        return;
    }
    int p[9];
    for (int k = 0; k < 9; k++)
        p[k] = in[(y + k / 3 - 1) * width + x + k % 3 - 1];
    SORT2(p[1], p[2]); SORT2(p[4], p[5]); SORT2(p[7], p[8]);
    SORT2(p[0], p[1]); SORT2(p[3], p[4]); SORT2(p[6], p[7]);
    SORT2(p[1], p[2]); SORT2(p[4], p[5]); SORT2(p[7], p[8]);
    SORT2(p[0], p[3]); SORT2(p[5], p[8]); SORT2(p[4], p[7]);
    SORT2(p[3], p[6]); SORT2(p[1], p[4]); SORT2(p[2], p[5]);
    SORT2(p[4], p[7]); SORT2(p[4], p[2]); SORT2(p[6], p[4]);
    SORT2(p[4], p[2]);
    out[y * width + x] = p[4];
}
