// out[i] = a[i] // b[i] as in Python: rounded down, also below zero.
#include "checked.h"

extern "C" __global__ void floor_divide(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int x = a[i], y = b[i];
        assert(y != 0 && "division by zero");
        assert((x != INT_MIN || y != -1) && "the quotient does not fit 32 bits");
        int quotient = x / y, rest = x % y;
        out[i] = rest != 0 && (rest ^ y) < 0 ? quotient - 1 : quotient;
    }
}
