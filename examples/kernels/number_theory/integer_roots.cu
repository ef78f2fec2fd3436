// Square and cube roots of 64-bit numbers, rounded down: Newton and bit by bit.
typedef unsigned long long u64;

__device__ u64 square_root(u64 n)
{
    if (n < 2)
        return n;
    u64 x = 1ull << ((65 - __clzll(n)) / 2);
    for (;;) {
        u64 y = (x + n / x) / 2;
        if (y >= x)
            return x;
        x = y;
    }
}

__device__ unsigned cube_root(u64 n)
{
    u64 y = 0;
    for (int s = 63; s >= 0; s -= 3) {
        y += y;
        u64 b = 3 * y * (y + 1) + 1;
        if ((n >> s) >= b) {
            n -= b << s;
            y++;
        }
    }
    return (unsigned)y;
}

extern "C" __global__ void integer_roots(const u64 *numbers, unsigned *square, unsigned *cube)
{
    square[threadIdx.x] = (unsigned)square_root(numbers[threadIdx.x]);
    cube[threadIdx.x] = cube_root(numbers[threadIdx.x]);
}
