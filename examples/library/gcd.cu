// out[i] = the greatest common divisor of a[i] and b[i], at least 0; gcd(0, 0) is 0.
#include "checked.h"

extern "C" __global__ void gcd(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned x = magnitude(a[i]), y = magnitude(b[i]);
#pragma unroll 1
        while (y != 0) {
            unsigned rest = x % y;
            x = y;
            y = rest;
        }
        assert((int)x >= 0 && "the divisor does not fit 32 bits");
        out[i] = x;
    }
}
