// Which of the bases 2 and 3 call an odd 64-bit number a prime (Miller and Rabin), in Montgomery form:
// __umul64hi gives the high half of the products.
typedef unsigned long long u64;

struct Montgomery {
    u64 n, inverse, one, minus_one;

    __device__ explicit Montgomery(u64 modulus) : n(modulus)
    {
        inverse = n;
        for (int i = 0; i < 5; i++)
            inverse *= 2 - n * inverse;
        one = (0 - n) % n;
        minus_one = n - one;
    }

    __device__ u64 multiply(u64 a, u64 b) const
    {
        u64 high = __umul64hi(a, b), low = a * b;
        u64 fold = __umul64hi(low * inverse, n);
        return high >= fold ? high - fold : high - fold + n;
    }
};

extern "C" __global__ void miller_rabin_64(const u64 *numbers, int *bases)
{
    const u64 n = numbers[threadIdx.x];
    const Montgomery field(n);
    const u64 d = (n - 1) >> (__ffsll(n - 1) - 1);
    int passed_by = 0;
    u64 base = field.one;
    for (int witness = 2; witness <= 3; witness++) {
        base += field.one;
        if (base >= n || base < field.one)
            base -= n;
        u64 x = field.one;
        for (int bit = 63 - __clzll(d); bit >= 0; bit--) {
            x = field.multiply(x, x);
            if (d >> bit & 1)
                x = field.multiply(x, base);
        }
        bool passed = x == field.one || x == field.minus_one;
        for (u64 e = d; !passed && e != (n - 1) >> 1; e <<= 1) {
            x = field.multiply(x, x);
            passed = x == field.minus_one;
        }
        passed_by |= passed << witness;
    }
    bases[threadIdx.x] = passed_by;
}
