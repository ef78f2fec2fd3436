// Jacobi symbols for a table of numerators and odd denominators, a two-dimensional grid.
extern "C" __global__ void jacobi_symbol(const int *top, const int *bottom, signed char *out, int rows,
                                         int columns)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || column >= columns)
        return;
    int n = bottom[row];
    int a = top[column] % n;
    if (a < 0)
        a += n;
    int sign = 1;
    while (a != 0) {
        while (a % 2 == 0) {
            a /= 2;
            if (n % 8 == 3 || n % 8 == 5)
                sign = -sign;
        }
        int t = a;
        a = n;
        n = t;
        if (a % 4 == 3 && n % 4 == 3)
            sign = -sign;
        a %= n;
    }
    out[row * columns + column] = n == 1 ? sign : 0;
}
