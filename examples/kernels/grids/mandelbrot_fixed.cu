// Mandelbrot in fixed point with 12 fractional bits: iterations until a point escapes.
#define FRACTION 12

extern "C" __global__ void mandelbrot_fixed(unsigned char *counts, int width, int left, int top, int step,
                                            int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    int cx = left + px * step, cy = top + py * step;
    int x = 0, y = 0, n = 0;
    for (; n < limit; n++) {
        int xx = x * x >> FRACTION, yy = y * y >> FRACTION;
        if (xx + yy > 4 << FRACTION)
            break;
        y = (2 * x * y >> FRACTION) + cy;
        x = xx - yy + cx;
    }
    counts[py * width + px] = n;
}
