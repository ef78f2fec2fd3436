// out[i] = -a[i]
#include "checked.h"

extern "C" __global__ void negate(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = checked_subtract(0, a[i]);
    }
}
