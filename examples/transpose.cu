// out[column][row] = in[row][column], `in` of rows x columns in row-major order; one thread per element.
// Launch: two-dimensional, x over the columns and y over the rows of `in`.
extern "C" __global__ void transpose(const int *in, int *out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns)
        out[column * rows + row] = in[row * columns + column];
}
