// Langton's ant on a torus of bits, an ant and a board a thread block, for many steps.
extern "C" __global__ void langtons_ant(unsigned *boards, int *places, int steps)
{
    __shared__ unsigned board[16];
    if (threadIdx.x < 16)
        board[threadIdx.x] = boards[16 * blockIdx.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        int x = places[3 * blockIdx.x], y = places[3 * blockIdx.x + 1], heading = places[3 * blockIdx.x + 2];
        for (int s = 0; s < steps; s++) {
            heading = (heading + (board[y] >> x & 1 ? 3 : 1)) & 3;
            board[y] ^= 1u << x;
            if (heading & 1)
                x = (x + 2 - heading) & 31;
            else
                y = (y + heading - 1) & 15;
        }
        places[3 * blockIdx.x] = x;
        places[3 * blockIdx.x + 1] = y;
        places[3 * blockIdx.x + 2] = heading;
    }
    __syncthreads();
    if (threadIdx.x < 16)
        boards[16 * blockIdx.x + threadIdx.x] = board[threadIdx.x];
}
