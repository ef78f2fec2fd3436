// Arithmetic that stops the launch where its result does not fit 32 bits. With NDEBUG nothing is checked, and
// results wrap.
#pragma once
#include <assert.h>
#include <limits.h>

// a + b, or what is left of it in 32 bits
__device__ inline int wrapped_sum(int a, int b)
{
    return (int)((unsigned)a + (unsigned)b);
}

// A sum has left the range where its sign is that of neither term.
__device__ inline bool sum_fits(int a, int b)
{
    return ((a ^ wrapped_sum(a, b)) & (b ^ wrapped_sum(a, b))) >= 0;
}

__device__ inline int checked_add(int a, int b)
{
    assert(sum_fits(a, b) && "the sum does not fit 32 bits");
    return wrapped_sum(a, b);
}

__device__ inline int checked_subtract(int a, int b)
{
    int difference = (int)((unsigned)a - (unsigned)b);
    assert(((a ^ b) & (a ^ difference)) >= 0 && "the difference does not fit 32 bits");
    return difference;
}

__device__ inline int checked_multiply(int a, int b)
{
    int product = (int)((unsigned)a * (unsigned)b);
    assert(__mulhi(a, b) == product >> 31 && "the product does not fit 32 bits");
    return product;
}

// *total += value, one thread after another
__device__ inline void fetch_checked_add(int *total, int value)
{
    int before = atomicAdd(total, value);
    assert(sum_fits(before, value) && "a partial sum does not fit 32 bits");
}

// x without its sign, which fits 32 bits without one
__device__ inline unsigned magnitude(int x)
{
    return x < 0 ? 0u - (unsigned)x : (unsigned)x;
}
