// Quotients and remainders, of and by variables and constants; by zero all bits are one.
// launch: 1 6 i32[]:100,-100,7,-2147483648,2147483647,-1 i32[]:7,-7,0,-1,10,3 i32[24]
// expect: [100, -100, 7, -2147483648, 2147483647, -1] ; [7, -7, 0, -1, 10, 3] ; [14, 14, -1, -2147483648, 214748364, 0, 2, -2, -1, 0, 7, -1, 14, 0, -1, 0, 214748364, 1431655765, 10, -10, 0, -214748364, 214748364, 0]
extern "C" __global__ void divide(const int *x, const int *y, int *out)
{
    int i = threadIdx.x;
    out[i] = x[i] / y[i];
    out[6 + i] = x[i] % y[i];
    out[12 + i] = (unsigned)x[i] / (unsigned)y[i];
    out[18 + i] = x[i] / 10;
}
