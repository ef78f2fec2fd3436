// out[row] = the sum of row `row` of a; one thread a row. Every partial sum has to fit, in the order of the
// columns.
#include "checked.h"

extern "C" __global__ void row_sums(const int *a, int *out, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        int sum = 0;
#pragma unroll 1
        for (int k = 0; k < columns; k++)
            sum = checked_add(sum, a[row * columns + k]);
        out[row] = sum;
    }
}
