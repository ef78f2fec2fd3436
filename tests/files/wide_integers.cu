// Sums, products, shifts, comparisons and quotients of 64 bits.
// launch: 1 4 i64[]:5000000000,-3,1099511627775,-9223372036854775808 i64[4] i32:7 i64:-4294967299
// expect: [5000000000, -3, 1099511627775, -9223372036854775808] ; [6553253366370481092, 4294968843, -564182609034747, 1152921496016912385]
extern "C" __global__ void wide(const long long *x, long long *out, int n, long long b)
{
    long long v = x[threadIdx.x];
    out[threadIdx.x] = v * v + n - (v >> 3) + (v > b ? v : b) + (b ^ v << 9);
}
