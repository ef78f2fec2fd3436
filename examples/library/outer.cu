// out[row][column] = a[row] * b[column]
// Launch: two-dimensional, x over the columns and y over the rows of out.
#include "checked.h"

extern "C" __global__ void outer(const int *a, const int *b, int *out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < columns && row < rows)
        out[row * columns + column] = checked_multiply(a[row], b[column]);
}
