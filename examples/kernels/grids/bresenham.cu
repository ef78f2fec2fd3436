// Lines by Bresenham into a bitmap of 32 columns, a line a thread, with atomic or.
struct Line {
    short x0, y0, x1, y1;
};

extern "C" __global__ void bresenham(const Line *lines, unsigned *bitmap, int *pixels)
{
    Line line = lines[threadIdx.x];
    int x = line.x0, y = line.y0;
    int dx = abs(line.x1 - x), dy = -abs(line.y1 - y);
    int sx = x < line.x1 ? 1 : -1, sy = y < line.y1 ? 1 : -1;
    int error = dx + dy, count = 0;
    while (true) {
        atomicOr(&bitmap[y], 1u << x);
        count++;
        if (x == line.x1 && y == line.y1)
            break;
        int twice = 2 * error;
        if (twice >= dy) {
            error += dy;
            x += sx;
        }
        if (twice <= dx) {
            error += dx;
            y += sy;
        }
    }
    pixels[threadIdx.x] = count;
}
