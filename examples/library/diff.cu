// out[i] = a[i + 1] - a[i], for the n - 1 neighbours among n elements
#include "checked.h"

extern "C" __global__ void diff(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1)
        out[i] = checked_subtract(a[i + 1], a[i]);
}
