// out[column] = the sum of column `column` of a; one thread a column. Every partial sum has to fit, in the
// order of the rows.
#include "checked.h"

extern "C" __global__ void column_sums(const int *a, int *out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        int sum = 0;
#pragma unroll 1
        for (int k = 0; k < rows; k++)
            sum = checked_add(sum, a[k * columns + column]);
        out[column] = sum;
    }
}
