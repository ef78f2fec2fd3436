// out[0] = the product of a. Every partial product has to fit, in the order of the elements.
// Launch: one thread. On a machine whose pass is one lane, work is what costs, and this does the least.
#include "checked.h"

extern "C" __global__ void product(const int *a, int *out, int n)
{
    int product = 1;
#pragma unroll 1
    for (int i = 0; i < n; i++)
        product = checked_multiply(product, a[i]);
    out[0] = product;
}
