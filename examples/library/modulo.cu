// out[i] = a[i] % b[i] as in Python: the rest of a division that is rounded down, with the sign of b[i].
#include "checked.h"

extern "C" __global__ void modulo(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int x = a[i], y = b[i];
        assert(y != 0 && "division by zero");
        int rest = y == -1 ? 0 : x % y;
        out[i] = rest != 0 && (rest ^ y) < 0 ? rest + y : rest;
    }
}
