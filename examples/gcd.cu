// out[i] = the greatest common divisor of a[i] and b[i], by repeated subtraction (gcd(x, 0) = x).
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void gcd(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = a[i];
    unsigned y = b[i];
#pragma unroll 1
    while (x != 0 && y != 0) {
        if (x >= y)
            x -= y;
        else
            y -= x;
    }
    out[i] = x | y;
}
