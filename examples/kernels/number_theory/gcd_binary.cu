// Stein's greatest common divisor of 64-bit numbers, and the least common multiple where it fits.
__device__ unsigned long long gcd(unsigned long long a, unsigned long long b)
{
    if (a == 0 || b == 0)
        return a | b;
    int shift = __ffsll(a | b) - 1;
    a >>= __ffsll(a) - 1;
    do {
        b >>= __ffsll(b) - 1;
        if (a > b) {
            unsigned long long t = a;
            a = b;
            b = t;
        }
        b -= a;
    } while (b);
    return a << shift;
}

extern "C" __global__ void gcd_binary(const unsigned long long *a, const unsigned long long *b,
                                      unsigned long long *divisor, unsigned long long *multiple)
{
    int i = threadIdx.x;
    unsigned long long g = gcd(a[i], b[i]);
    divisor[i] = g;
    multiple[i] = g ? a[i] / g * b[i] : 0;
}
