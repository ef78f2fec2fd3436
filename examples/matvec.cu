// y = A x, A of rows x columns in row-major order; one thread per row.
// Launch: any grid and block of one dimension with at least `rows` threads.
extern "C" __global__ void matvec(const int *a, const int *x, int *y, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < columns; k++)
        sum += a[row * columns + k] * x[k];
    y[row] = sum;
}
