// out[0] += the sum of a. Every partial sum has to fit, in the order of the elements.
#include "checked.h"

extern "C" __global__ void sum(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        fetch_checked_add(out, a[i]);
    }
}
