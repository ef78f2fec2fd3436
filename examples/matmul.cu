// C = A B, A of rows x inner, B of inner x columns, all in row-major order; one thread per element of C.
// Launch: two-dimensional, x over the columns and y over the rows of C.
extern "C" __global__ void matmul(const int *a, const int *b, int *c, int rows, int inner, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) {
        int sum = 0;
#pragma unroll 1
        for (int k = 0; k < inner; k++)
            sum += a[row * inner + k] * b[k * columns + column];
        c[row * columns + column] = sum;
    }
}
