// out[i] = the square root of a[i], rounded down: a bit a round, from the highest.
#include "checked.h"

extern "C" __global__ void isqrt(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int rest = a[i], root = 0;
        assert(rest >= 0 && "the square root of a negative number");
#pragma unroll 1
        for (int bit = 1 << 30; bit > 0; bit >>= 2) {
            int trial = root + bit;
            root >>= 1;
            if (rest >= trial) {
                rest -= trial;
                root += bit;
            }
        }
        out[i] = root;
    }
}
