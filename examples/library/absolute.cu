// out[i] = a[i] without its sign
#include "checked.h"

extern "C" __global__ void absolute(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int x = a[i];
        assert(x != INT_MIN && "the absolute value does not fit 32 bits");
        out[i] = abs(x);
    }
}
