// The game of life with 32 cells in a word: neighbours are counted by full adders on whole rows.
__device__ __forceinline__ unsigned rotate_left(unsigned x) { return __funnelshift_l(x, x, 1); }
__device__ __forceinline__ unsigned rotate_right(unsigned x) { return __funnelshift_r(x, x, 1); }

__device__ void full_adder(unsigned a, unsigned b, unsigned c, unsigned &sum, unsigned &carry)
{
    sum = a ^ b ^ c;
    carry = (a & b) | (c & (a ^ b));
}

extern "C" __global__ void life_bits(unsigned *rows, int generations)
{
    __shared__ unsigned world[32];
    int y = threadIdx.x, height = blockDim.x;
    unsigned row = rows[y];
    for (int g = 0; g < generations; g++) {
        world[y] = row;
        __syncthreads();
        unsigned up = world[(y + height - 1) % height], down = world[(y + 1) % height];
        unsigned s0, c0, s1, c1, s2, c2, ones, twos, carry;
        full_adder(rotate_left(up), up, rotate_right(up), s0, c0);
        full_adder(rotate_left(down), down, rotate_right(down), s1, c1);
        s2 = rotate_left(row) ^ rotate_right(row);
        c2 = rotate_left(row) & rotate_right(row);
        full_adder(s0, s1, s2, ones, carry);
        unsigned pair, four0, four1;
        full_adder(c0, c1, c2, pair, four0);
        twos = pair ^ carry;
        four1 = pair & carry;
        row = twos & ~(four0 | four1) & (ones | row);
        __syncthreads();
    }
    rows[y] = row;
}
