// out[i] = a[i] to the power of b[i], by squaring; 0 to the power of 0 is 1.
#include "checked.h"

extern "C" __global__ void power(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int base = a[i], exponent = b[i], result = 1;
        assert(exponent >= 0 && "the exponent is negative");
#pragma unroll 1
        while (exponent > 0) {
            if (exponent & 1)
                result = checked_multiply(result, base);
            exponent >>= 1;
            if (exponent > 0)
                base = checked_multiply(base, base);
        }
        out[i] = result;
    }
}
