// Number and sum of divisors, Euler's function and Moebius's, from a factorisation by trial division.
struct Arithmetic {
    int divisors, sigma, phi, moebius;
};

__device__ Arithmetic factorise(int n)
{
    Arithmetic f = {1, 1, 1, 1};
    for (int p = 2; n > 1; p++) {
        if (p * p > n)
            p = n;
        int exponent = 0, power = 1, sum = 1;
        while (n % p == 0) {
            n /= p;
            exponent++;
            power *= p;
            sum += power;
        }
        if (!exponent)
            continue;
        f.divisors *= exponent + 1;
        f.sigma *= sum;
        f.phi *= power / p * (p - 1);
        f.moebius = exponent > 1 ? 0 : -f.moebius;
    }
    return f;
}

extern "C" __global__ void divisor_sums(const int *numbers, int4 *out)
{
    Arithmetic f = factorise(numbers[threadIdx.x]);
    out[threadIdx.x] = make_int4(f.divisors, f.sigma, f.phi, f.moebius);
}
