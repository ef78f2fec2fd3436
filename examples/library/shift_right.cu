// out[i] = a[i] divided by 2 to the power of b[i], rounded down
#include "checked.h"

extern "C" __global__ void shift_right(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int count = b[i];
        assert(count >= 0 && "the shift count is negative");
        out[i] = a[i] >> min(count, 31);
    }
}
