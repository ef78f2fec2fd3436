// A Galois shift register of 16 bits: the length of its period from each start, and the state half-way.
extern "C" __global__ void lfsr_galois(const unsigned short *starts, const unsigned short *taps, int *period,
                                       unsigned short *half, int limit)
{
    int t = threadIdx.x;
    unsigned short start = starts[t], state = start;
    int steps = 0;
    do {
        unsigned lsb = state & 1u;
        state >>= 1;
        if (lsb)
            state ^= taps[t];
        steps++;
    } while (state != start && steps < limit);
    period[t] = steps;
    for (int i = 0; i < steps / 2; i++)
        state = (unsigned short)((state >> 1) ^ (-(state & 1) & taps[t]));
    half[t] = state;
}
