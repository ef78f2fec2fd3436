// Regions of equal colour on a grid of bytes: each cell gets the smallest index of its region.
extern "C" __global__ void flood_fill(const unsigned char *colour, int *region, int width, int height)
{
    __shared__ int label[128];
    int i = threadIdx.x;
    int x = i % width, y = i / width;
    bool cell = i < width * height;
    if (cell)
        label[i] = i;
    __syncthreads();
    bool again = true;
    while (again) {
        int best = cell ? label[i] : 0;
        int before = best;
        if (cell) {
            if (x > 0 && colour[i - 1] == colour[i])
                best = min(best, label[i - 1]);
            if (x + 1 < width && colour[i + 1] == colour[i])
                best = min(best, label[i + 1]);
            if (y > 0 && colour[i - width] == colour[i])
                best = min(best, label[i - width]);
            if (y + 1 < height && colour[i + width] == colour[i])
                best = min(best, label[i + width]);
            best = label[best];
        }
        __syncthreads();
        if (cell)
            label[i] = best;
        again = __syncthreads_or(best != before);
    }
    if (cell)
        region[i] = label[i];
}
