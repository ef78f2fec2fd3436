// Row index[i] of a, which has `rows` rows of `width` elements, becomes row i of out; n rows in all. A negative
// index counts from the end, as in Python.
// Launch: two-dimensional, x over the elements of a row and y over the rows of out.
#include "checked.h"

extern "C" __global__ void gather(const int *a, const int *index, int *out, int rows, int width, int n)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < width && i < n) {
        int row = index[i];
        if (row < 0)
            row += rows;
        assert(row >= 0 && row < rows && "the index is outside");
        out[i * width + column] = a[row * width + column];
    }
}
