// Minimum, maximum and absolute value, signed and unsigned.
// launch: 1 4 i32[]:-5,3,2147483647,-2147483648 i32[]:2,-3,1,0 i32[4] i32[4] u32[4] i32[4]
// expect: [-5, 3, 2147483647, -2147483648] ; [2, -3, 1, 0] ; [-5, -3, 1, -2147483648] ; [2, 3, 2147483647, 0] ; [max(a % 2**32, b % 2**32) for a, b in ((-5, 2), (3, -3), (2147483647, 1), (-2147483648, 0))] ; [5, 3, 2147483647, -2147483648]
extern "C" __global__ void extremes(const int *a, const int *b, int *low, int *high, unsigned *top, int *size)
{
    int i = threadIdx.x;
    low[i] = min(a[i], b[i]);
    high[i] = max(a[i], b[i]);
    top[i] = max((unsigned)a[i], (unsigned)b[i]);
    size[i] = abs(a[i]);
}
