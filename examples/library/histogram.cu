// out[v] += how often the number v is in a, for v from 0 to bins - 1
#include "checked.h"

extern "C" __global__ void histogram(const int *a, int *out, int n, int bins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int value = a[i];
        assert(value >= 0 && value < bins && "the number has no bin");
        atomicAdd(&out[value], 1);
    }
}
