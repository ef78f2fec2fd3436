// out[i] = the bits that a[i] without its sign takes, without leading zeros; 0 takes none.
#include "checked.h"

extern "C" __global__ void bit_length(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = 32 - __clz(magnitude(a[i]));
    }
}
