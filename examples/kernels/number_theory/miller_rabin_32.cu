// Deterministic Miller-Rabin for 32-bit numbers with the bases 2, 7 and 61.
__device__ unsigned mul_mod(unsigned a, unsigned b, unsigned m)
{
    return (unsigned)((unsigned long long)a * b % m);
}

__device__ unsigned pow_mod(unsigned base, unsigned exponent, unsigned m)
{
    unsigned result = 1;
    for (base %= m; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = mul_mod(result, base, m);
        base = mul_mod(base, base, m);
    }
    return result;
}

__device__ bool is_composite_by(unsigned witness, unsigned n, unsigned d, int r)
{
    unsigned x = pow_mod(witness, d, n);
    if (x == 1 || x == n - 1)
        return false;
    while (--r > 0) {
        x = mul_mod(x, x, n);
        if (x == n - 1)
            return false;
    }
    return true;
}

extern "C" __global__ void miller_rabin_32(const unsigned *numbers, unsigned char *prime, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    unsigned n = numbers[i];
    if (n < 2 || (n % 2 == 0 && n != 2)) {
        prime[i] = 0;
        return;
    }
    unsigned d = n - 1;
    int r = 0;
    while (d && d % 2 == 0) {
        d /= 2;
        r++;
    }
    bool result = true;
    const unsigned witnesses[3] = {2, 7, 61};
    for (int k = 0; k < 3 && result; k++)
        if (n != witnesses[k] && is_composite_by(witnesses[k], n, d, r))
            result = false;
    prime[i] = result;
}
