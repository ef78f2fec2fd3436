// The sum of two numbers of 1024 bits, a word a lane: carries by ballots and one addition.
extern "C" __global__ void big_add(const unsigned *a, const unsigned *b, unsigned *sum, int *carry_out)
{
    const int lane = threadIdx.x;
    const int at = blockIdx.x * 32 + lane;
    unsigned s = a[at] + b[at];
    unsigned generate = __ballot_sync(0xffffffffu, s < a[at]);
    unsigned propagate = __ballot_sync(0xffffffffu, s == 0xffffffffu);
    // Adding the generated carries to the runs of ones lets them ripple through all 32 words at once.
    unsigned long long carried = ((unsigned long long)(generate << 1) + propagate) ^ propagate;
    sum[at] = s + (unsigned)(carried >> lane & 1);
    if (lane == 31)
        carry_out[blockIdx.x] = (generate >> 31) | (int)(carried >> 32 & 1);
}
