// Products and shifts of 128 bits, of both signs.
// launch: 1 4 i64[]:-9223372036854775808,9223372036854775807,-3,1234567890123456789 i64[12]
// expect: [-2**63, 2**63 - 1, -3, 1234567890123456789] ; [part for i, (a, b) in enumerate(((-2**63, 2**63 - 1), (2**63 - 1, -3), (-3, 1234567890123456789), (1234567890123456789, -2**63))) for part in ((a * b - 7) >> 64, ((a * b - 7 >> 9 * i) + 2**63) % 2**64 - 2**63, a * b < i - 3)]
extern "C" __global__ void products(const long long *a, long long *out)
{
    int i = threadIdx.x;
    __int128 product = (__int128)a[i] * a[(i + 1) % 4];
    out[3 * i] = product - 7 >> 64;
    out[3 * i + 1] = product - 7 >> 9 * i;
    out[3 * i + 2] = product < i - 3;
}
