// out[column][row] = a[row][column]
// Launch: two-dimensional, x over the columns and y over the rows of a.
extern "C" __global__ void transpose(const int *a, int *out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < columns && row < rows)
        out[column * rows + row] = a[row * columns + column];
}
