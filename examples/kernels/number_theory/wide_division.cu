// A number of 128 bits divided by one of 64 by shifting and subtracting; with 64-bit division and remainder
// beside it.
typedef unsigned long long u64;

extern "C" __global__ void wide_division(const ulonglong2 *dividends, const u64 *divisors, u64 *quotients,
                                         u64 *remainders,
                                         long long *narrow)
{
    int i = threadIdx.x;
    u64 divisor = divisors[i];
    u64 remainder = dividends[i].y % divisor;
    u64 low = dividends[i].x;
    u64 quotient = 0;
    for (int bit = 63; bit >= 0; bit--) {
        bool lost = remainder >> 63;
        remainder = remainder << 1 | (low >> bit & 1);
        if (lost || remainder >= divisor) {
            remainder -= divisor;
            quotient |= 1ull << bit;
        }
    }
    quotients[i] = quotient;
    remainders[i] = remainder;
    long long x = (long long)low, y = (long long)(divisor >> 1);
    narrow[2 * i] = y ? x / y : 0;
    narrow[2 * i + 1] = y ? x % y : 0;
}
