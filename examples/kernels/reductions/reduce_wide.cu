// Sum and exclusive or of 64-bit numbers: a butterfly of shuffles leaves the result in every lane.
extern "C" __global__ void reduce_wide(const unsigned long long *in, unsigned long long *out)
{
    unsigned long long sum = in[threadIdx.x];
    unsigned long long parity = sum;
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        parity ^= __shfl_xor_sync(0xffffffffu, parity, mask);
    }
    if (threadIdx.x == 7) {
        out[0] = sum;
        out[1] = parity;
    }
}
