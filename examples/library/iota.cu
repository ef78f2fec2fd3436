// out[i] = start + i
#include "checked.h"

extern "C" __global__ void iota(int *out, int start, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = checked_add(start, i);
}
