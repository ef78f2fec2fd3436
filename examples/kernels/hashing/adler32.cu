// Adler-32 of one text by a thread block: both sums are sums over bytes with weights, so they add up in any
// order.
#define BASE 65521u

extern "C" __global__ void adler32(const unsigned char *data, unsigned *out, int n)
{
    __shared__ unsigned long long total_a, total_b;
    if (threadIdx.x == 0)
        total_a = total_b = 0;
    __syncthreads();
    unsigned long long a = 0, b = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        a += data[i];
        b += (unsigned long long)(n - i) * data[i];
    }
    atomicAdd(&total_a, a);
    atomicAdd(&total_b, b);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned low = (unsigned)((1 + total_a) % BASE);
        unsigned high = (unsigned)((n + total_b) % BASE);
        *out = high << 16 | low;
    }
}
