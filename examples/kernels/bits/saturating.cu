// Saturating sums, differences and products of 32-bit numbers, by overflow tests and by 64 bits.
__device__ int add_sat(int a, int b)
{
    int sum = (int)((unsigned)a + (unsigned)b);
    if (((a ^ sum) & (b ^ sum)) < 0)
        return a < 0 ? -2147483647 - 1 : 2147483647;
    return sum;
}

__device__ int clamp(long long x)
{
    return x > 2147483647ll ? 2147483647 : x < -2147483648ll ? -2147483647 - 1 : (int)x;
}

extern "C" __global__ void saturating(const int *a, const int *b, int *out, signed char *narrow)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i], y = b[i];
    out[4 * i] = add_sat(x, y);
    out[4 * i + 1] = clamp((long long)x - y);
    out[4 * i + 2] = clamp((long long)x * y);
    out[4 * i + 3] = (int)(((unsigned)x & ~(unsigned)(x >> 31)) > 255u ? 255 : x & ~(x >> 31));
    narrow[i] = (signed char)max(-128, min(127, x));
}
