// Quotients of 64 bits: of words, of more, and by constants.
// launch: 1 6 i64[]:5000000000,-3,1099511627775,-9223372036854775808,77,9 i64[]:7,-4294967299,1048577,-1,11,4 i64[12]
// expect: [5000000000, -3, 1099511627775, -9223372036854775808, 77, 9] ; [7, -4294967299, 1048577, -1, 11, 4] ; [714285714, 1, 1048575, 0, 7, 2, 5000000, 18446744073709551, 1099511627, 9223372036854775, 0, 0]
extern "C" __global__ void wide(const unsigned long long *x, const unsigned long long *y, unsigned long long *out)
{
    int i = threadIdx.x;
    out[i] = x[i] / y[i];
    out[6 + i] = x[i] / 1000;
}
