// A linear congruential generator that each thread enters far along, by squaring the affine step.
extern "C" __global__ void lcg_jump(unsigned seed, unsigned distance, unsigned *out, int draws)
{
    unsigned skip = distance * threadIdx.x;
    unsigned a = 1664525u, c = 1013904223u;
    unsigned total_a = 1, total_c = 0;
    while (skip) {
        if (skip & 1) {
            total_a *= a;
            total_c = total_c * a + c;
        }
        c *= a + 1;
        a *= a;
        skip >>= 1;
    }
    unsigned x = total_a * seed + total_c;
    for (int i = 0; i < draws; i++) {
        out[threadIdx.x * draws + i] = x >> 16;
        x = 1664525u * x + 1013904223u;
    }
}
