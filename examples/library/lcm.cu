// out[i] = the least common multiple of a[i] and b[i], at least 0; it is 0 where one of them is.
#include "checked.h"

extern "C" __global__ void lcm(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned x = magnitude(a[i]), y = magnitude(b[i]);
        unsigned divisor = x, other = y;
#pragma unroll 1
        while (other != 0) {
            unsigned rest = divisor % other;
            divisor = other;
            other = rest;
        }
        unsigned long long multiple = divisor ? (unsigned long long)(x / divisor) * y : 0;
        assert(multiple <= INT_MAX && "the multiple does not fit 32 bits");
        out[i] = (int)multiple;
    }
}
