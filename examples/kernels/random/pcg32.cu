// PCG-XSH-RR with 64 bits of state, and numbers below a bound without bias, by rejection.
struct pcg32_random_t {
    unsigned long long state, inc;
};

__device__ unsigned pcg32_random_r(pcg32_random_t *rng)
{
    unsigned long long oldstate = rng->state;
    rng->state = oldstate * 6364136223846793005ull + (rng->inc | 1);
    unsigned xorshifted = ((oldstate >> 18u) ^ oldstate) >> 27u;
    unsigned rot = oldstate >> 59u;
    return (xorshifted >> rot) | (xorshifted << ((-rot) & 31));
}

__device__ unsigned pcg32_boundedrand_r(pcg32_random_t *rng, unsigned bound)
{
    unsigned threshold = -bound % bound;
    for (;;) {
        unsigned r = pcg32_random_r(rng);
        if (r >= threshold)
            return r % bound;
    }
}

extern "C" __global__ void pcg32(unsigned long long seed, unsigned *raw, unsigned *dice, int draws,
                                 unsigned bound)
{
    int t = threadIdx.x;
    pcg32_random_t rng;
    rng.state = 0;
    rng.inc = ((unsigned long long)t << 1) | 1;
    pcg32_random_r(&rng);
    rng.state += seed;
    pcg32_random_r(&rng);
    for (int i = 0; i < draws; i++)
        raw[t * draws + i] = pcg32_random_r(&rng);
    for (int i = 0; i < draws; i++)
        dice[t * draws + i] = pcg32_boundedrand_r(&rng, bound);
}
