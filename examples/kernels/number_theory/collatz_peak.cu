// The longest Collatz run below a limit: steps and peak per start in 64 bits, the best by a packed atomic
// maximum.
extern "C" __global__ void collatz_peak(unsigned long long *peaks, unsigned long long *best, int limit)
{
    int start = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (start > limit)
        return;
    unsigned long long x = start, peak = x;
    unsigned steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        if (x > peak)
            peak = x;
        steps++;
    }
    peaks[start - 1] = peak;
    // Of runs of one length the smallest start counts.
    atomicMax(best, (unsigned long long)steps << 32 | (0xffffffffu - start));
}
