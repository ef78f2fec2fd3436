// out[i] = a[i] * b[i]
#include "checked.h"

extern "C" __global__ void multiply(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = checked_multiply(a[i], b[i]);
    }
}
