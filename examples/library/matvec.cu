// out = A b, A of rows x columns; one thread a row. Every product and partial sum has to fit, in the order of
// the columns.
#include "checked.h"

extern "C" __global__ void matvec(const int *a, const int *b, int *out, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        int sum = 0;
#pragma unroll 1
        for (int k = 0; k < columns; k++)
            sum = checked_add(sum, checked_multiply(a[row * columns + k], b[k]));
        out[row] = sum;
    }
}
