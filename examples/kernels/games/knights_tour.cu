// Open knight's tours of a small board that begin on a thread's square, by search with a stack of moves.
#define W 4
#define H 3

extern "C" __global__ void knights_tour(int *tours)
{
    const signed char dx[8] = {1, 2, 2, 1, -1, -2, -2, -1}, dy[8] = {2, 1, -1, -2, -2, -1, 1, 2};
    unsigned char square[W * H], tried[W * H];
    unsigned visited = 1u << threadIdx.x;
    int depth = 0, count = 0;
    square[0] = threadIdx.x;
    tried[0] = 0;
    while (depth >= 0) {
        if (depth == W * H - 1) {
            count++;
            visited ^= 1u << square[depth--];
            continue;
        }
        int k = tried[depth]++;
        if (k == 8) {
            visited ^= 1u << square[depth--];
            continue;
        }
        int x = square[depth] % W + dx[k], y = square[depth] / W + dy[k];
        if (x < 0 || y < 0 || x >= W || y >= H || (visited >> (y * W + x) & 1))
            continue;
        square[++depth] = y * W + x;
        tried[depth] = 0;
        visited |= 1u << (y * W + x);
    }
    tours[threadIdx.x] = count;
}
