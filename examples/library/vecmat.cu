// out = a B, B of rows x columns; one thread a column. Every product and partial sum has to fit, in the order
// of the rows.
#include "checked.h"

extern "C" __global__ void vecmat(const int *a, const int *b, int *out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        int sum = 0;
#pragma unroll 1
        for (int k = 0; k < rows; k++)
            sum = checked_add(sum, checked_multiply(a[k], b[k * columns + column]));
        out[column] = sum;
    }
}
