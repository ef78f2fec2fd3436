// out = A B, A of rows x inner and B of inner x columns; one thread an element of out. Every product and
// partial sum has to fit, in the order of the inner dimension.
// Launch: two-dimensional, x over the columns and y over the rows of out.
#include "checked.h"

extern "C" __global__ void matmul(const int *a, const int *b, int *out, int rows, int inner, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < columns && row < rows) {
        int sum = 0;
#pragma unroll 1
        for (int k = 0; k < inner; k++)
            sum = checked_add(sum, checked_multiply(a[row * inner + k], b[k * columns + column]));
        out[row * columns + column] = sum;
    }
}
