// Opening of a bitmap, rows of 32 bits: erosion, then dilation by a cross, from neighbours' registers.
extern "C" __global__ void dilate_erode(const unsigned *in, unsigned *eroded, unsigned *opened)
{
    int y = threadIdx.x;
    unsigned row = in[y];
    unsigned up = __shfl_up_sync(0xffffffffu, row, 1), down = __shfl_down_sync(0xffffffffu, row, 1);
    if (y == 0)
        up = 0;
    if (y == 31)
        down = 0;
    unsigned thin = row & row << 1 & row >> 1 & up & down;
    up = __shfl_up_sync(0xffffffffu, thin, 1);
    down = __shfl_down_sync(0xffffffffu, thin, 1);
    if (y == 0)
        up = 0;
    if (y == 31)
        down = 0;
    eroded[y] = thin;
    opened[y] = thin | thin << 1 | thin >> 1 | up | down;
}
