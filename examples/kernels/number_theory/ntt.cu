// Number-theoretic transform of 64 points modulo 998244353 in shared memory, forward, pointwise square, and
// back.
#define MOD 998244353u
#define POINTS 64

__device__ __forceinline__ unsigned mul(unsigned a, unsigned b) { return (unsigned long long)a * b % MOD; }

__device__ unsigned power(unsigned base, unsigned e)
{
    unsigned result = 1;
    for (; e; e >>= 1, base = mul(base, base))
        if (e & 1)
            result = mul(result, base);
    return result;
}

__device__ void transform(unsigned *a, unsigned root)
{
    int t = threadIdx.x;
    unsigned reversed[2];
    for (int k = 0; k < 2; k++)
        reversed[k] = a[__brev(2 * t + k) >> 26];
    __syncthreads();
    a[2 * t] = reversed[0];
    a[2 * t + 1] = reversed[1];
    __syncthreads();
    for (int half = 1; half < POINTS; half <<= 1) {
        unsigned w = power(root, (POINTS / 2 / half) * (t % half));
        int i = t / half * 2 * half + t % half;
        unsigned x = a[i], y = mul(a[i + half], w);
        a[i] = x + y >= MOD ? x + y - MOD : x + y;
        a[i + half] = x >= y ? x - y : x + MOD - y;
        __syncthreads();
    }
}

extern "C" __global__ void ntt(const unsigned *in, unsigned *spectrum, unsigned *square)
{
    __shared__ unsigned a[POINTS];
    int t = threadIdx.x;
    a[t] = in[t];
    a[t + POINTS / 2] = in[t + POINTS / 2];
    unsigned root = power(3, (MOD - 1) / POINTS);
    __syncthreads();
    transform(a, root);
    for (int i = t; i < POINTS; i += POINTS / 2) {
        spectrum[i] = a[i];
        a[i] = mul(a[i], a[i]);
    }
    __syncthreads();
    transform(a, power(root, MOD - 2));
    unsigned scale = power(POINTS, MOD - 2);
    square[t] = mul(a[t], scale);
    square[t + POINTS / 2] = mul(a[t + POINTS / 2], scale);
}
