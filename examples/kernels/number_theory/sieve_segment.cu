// A segmented sieve: every block sieves 64 odd numbers beyond a start with the small primes, as bits.
__constant__ unsigned short small_primes[] = {3,  5,  7,  11, 13, 17, 19, 23, 29, 31, 37, 41, 43,
                                              47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97};

extern "C" __global__ void sieve_segment(unsigned first_odd, unsigned *bits)
{
    __shared__ unsigned words[2];
    unsigned base = first_odd + blockIdx.x * 128;
    if (threadIdx.x < 2)
        words[threadIdx.x] = 0xffffffffu;
    __syncthreads();
    for (int k = threadIdx.x; k < sizeof(small_primes) / sizeof(small_primes[0]); k += blockDim.x) {
        unsigned p = small_primes[k];
        unsigned start = max(p * p, (base + p - 1) / p * p);
        if (start % 2 == 0)
            start += p;
        for (unsigned m = start; m < base + 128; m += 2 * p)
            atomicAnd(&words[(m - base) / 64], ~(1u << (m - base) / 2 % 32));
    }
    __syncthreads();
    if (threadIdx.x < 2)
        bits[blockIdx.x * 2 + threadIdx.x] = words[threadIdx.x];
}
