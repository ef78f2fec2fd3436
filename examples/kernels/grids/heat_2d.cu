// Heat in a plate in fixed point: five-point steps between two shared copies, with a fixed border.
#define SIDE 12

extern "C" __global__ void heat_2d(int *plate, int steps)
{
    __shared__ int grid[2][SIDE][SIDE];
    int x = threadIdx.x, y = threadIdx.y;
    grid[0][y][x] = grid[1][y][x] = plate[y * SIDE + x];
    bool inside = x > 0 && y > 0 && x < SIDE - 1 && y < SIDE - 1;
    int now = 0;
    for (int s = 0; s < steps; s++) {
        __syncthreads();
        if (inside) {
            int centre = grid[now][y][x];
            int around = grid[now][y - 1][x] + grid[now][y + 1][x];
            around += grid[now][y][x - 1] + grid[now][y][x + 1];
            grid[1 - now][y][x] = centre + ((around - 4 * centre) >> 3);
        }
        now = 1 - now;
    }
    plate[y * SIDE + x] = grid[now][y][x];
}
