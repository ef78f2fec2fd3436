// Modular exponentiation modulo a 64-bit number by doubling, without a wide product.
typedef unsigned long long u64;

__device__ u64 add_mod(u64 a, u64 b, u64 m) { return a >= m - b ? a - (m - b) : a + b; }

__device__ u64 mul_mod(u64 a, u64 b, u64 m)
{
    u64 result = 0;
    while (b) {
        if (b & 1)
            result = add_mod(result, a, m);
        a = add_mod(a, a, m);
        b >>= 1;
    }
    return result;
}

extern "C" __global__ void power_mod(const u64 *bases, const unsigned *exponents, u64 *out, u64 m)
{
    u64 base = bases[threadIdx.x] % m, result = 1 % m;
    for (unsigned e = exponents[threadIdx.x]; e; e >>= 1) {
        if (e & 1)
            result = mul_mod(result, base, m);
        base = mul_mod(base, base, m);
    }
    out[threadIdx.x] = result;
}
