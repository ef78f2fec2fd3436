// Marsaglia's xorshift with 32 bits: each thread draws a run of numbers from its own state and leaves the
// state.
extern "C" __global__ void xorshift32(unsigned *states, unsigned *out, int draws)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = states[t];
    for (int i = 0; i < draws; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        out[t * draws + i] = x;
    }
    states[t] = x;
}
