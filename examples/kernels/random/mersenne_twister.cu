// The next numbers of MT19937 from a state that was just seeded: twist and temper, a word a thread.
#define N 624
#define M 397
#define MATRIX_A 0x9908b0dfu

extern "C" __global__ void mersenne_twister(const unsigned *state, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned y = (state[i] & 0x80000000u) | (state[i + 1] & 0x7fffffffu);
    unsigned x = state[i + M] ^ (y >> 1) ^ ((y & 1) ? MATRIX_A : 0u);
    x ^= x >> 11;
    x ^= (x << 7) & 0x9d2c5680u;
    x ^= (x << 15) & 0xefc60000u;
    x ^= x >> 18;
    out[i] = x;
}
