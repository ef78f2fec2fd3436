// The sieve of Eratosthenes in shared memory, two flags a byte apart; then the primes are counted.
#define LIMIT 200

extern "C" __global__ void sieve_shared(unsigned char *flags, int *count, int n)
{
    __shared__ unsigned char composite[LIMIT];
    __shared__ int total;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        composite[i] = i < 2;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    for (int p = 2; p * p < n; p++) {
        if (composite[p])
            continue;
        for (int m = p * p + p * threadIdx.x; m < n; m += p * blockDim.x)
            composite[m] = 1;
        __syncthreads();
    }
    __syncthreads();
    int mine = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        flags[i] = !composite[i];
        mine += !composite[i];
    }
    atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        *count = total;
}
