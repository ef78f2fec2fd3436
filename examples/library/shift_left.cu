// out[i] = a[i] times 2 to the power of b[i]
#include "checked.h"

extern "C" __global__ void shift_left(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int x = a[i], count = b[i];
        assert(count >= 0 && "the shift count is negative");
        int shifted = count < 32 ? (int)((unsigned)x << count) : 0;
        assert(shifted >> min(count, 31) == x && "the shifted number does not fit 32 bits");
        out[i] = shifted;
    }
}
