// A factor of each composite number by Pollard's rho with Floyd's cycle detection; the start comes from the
// thread.
__device__ unsigned gcd(unsigned a, unsigned b)
{
    while (b) {
        unsigned t = a % b;
        a = b;
        b = t;
    }
    return a;
}

extern "C" __global__ void pollard_rho(const unsigned *numbers, unsigned *smaller)
{
    unsigned n = numbers[threadIdx.x];
    unsigned factor = n;
    for (unsigned c = 1; factor == n; c++) {
        unsigned long long x = 2, y = 2;
        do {
            x = (x * x + c) % n;
            y = (y * y + c) % n;
            y = (y * y + c) % n;
            factor = gcd(x > y ? x - y : y - x, n);
        } while (factor == 1);
    }
    smaller[threadIdx.x] = min(factor, n / factor);
}
