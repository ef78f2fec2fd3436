// Radix sort with digits of four bits: counts per digit, their prefix sums, stable places; signed 64-bit
// keys.
#define RADIX 16

extern "C" __global__ void radix_sort_digits(const long long *in, long long *out, int n)
{
    __shared__ unsigned long long a[32], b[32];
    __shared__ int count[RADIX], start[RADIX];
    int t = threadIdx.x;
    unsigned long long *from = a, *to = b;
    from[t] = (unsigned long long)in[t] ^ (1ull << 63);
    for (int shift = 0; shift < 64; shift += 4) {
        if (t < RADIX)
            count[t] = 0;
        __syncthreads();
        int digit = (int)(from[t] >> shift) & (RADIX - 1);
        atomicAdd(&count[digit], 1);
        __syncthreads();
        if (t == 0) {
            int sum = 0;
            for (int d = 0; d < RADIX; d++) {
                start[d] = sum;
                sum += count[d];
            }
        }
        __syncthreads();
        int place = start[digit];
        for (int k = 0; k < t; k++)
            place += ((int)(from[k] >> shift) & (RADIX - 1)) == digit;
        to[place] = from[t];
        __syncthreads();
        unsigned long long *swap = from;
        from = to;
        to = swap;
    }
    out[t] = (long long)(from[t] ^ (1ull << 63));
}
