// The number below the product of three moduli with given remainders, and 0 where an input is no remainder.
__device__ long long inverse(long long a, long long m)
{
    long long result = 1, exponent = m - 2;
    for (a %= m; exponent > 0; exponent /= 2) {
        if (exponent % 2)
            result = result * a % m;
        a = a * a % m;
    }
    return result;
}

extern "C" __global__ void chinese_remainder(const int *remainders, long long *out, int p, int q, int r)
{
    const int moduli[3] = {p, q, r};
    long long x = 0, product = 1;
    for (int k = 0; k < 3; k++) {
        int a = remainders[3 * threadIdx.x + k], m = moduli[k];
        if (a < 0 || a >= m) {
            out[threadIdx.x] = 0;
            return;
        }
        long long missing = ((a - x) % m + m) % m;
        x += product * (missing * inverse(product, m) % m);
        product *= m;
    }
    out[threadIdx.x] = x;
}
