// Values of a polynomial modulo a prime, by Horner, with a Barrett reduction in place of division.
struct Barrett {
    unsigned m;
    unsigned long long ratio;

    __device__ Barrett(unsigned modulus) : m(modulus), ratio(~0ull / modulus) {}

    __device__ unsigned reduce(unsigned long long x) const
    {
        unsigned long long q = __umul64hi(x, ratio);
        unsigned long long r = x - q * m;
        while (r >= m)
            r -= m;
        return (unsigned)r;
    }
};

extern "C" __global__ void polynomial_mod(const unsigned *coefficients, int degree, const unsigned *points,
                                          unsigned *values,
                                          unsigned m)
{
    Barrett barrett(m);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = points[i], value = 0;
    for (int k = degree; k >= 0; k--)
        value = barrett.reduce((unsigned long long)value * x + coefficients[k]);
    values[i] = value;
}
