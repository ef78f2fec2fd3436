// The transpose of a 32 by 32 matrix of bits: exchanges of ever smaller halves between lanes.
__device__ unsigned exchange(unsigned x, int lane, int distance, unsigned mask)
{
    unsigned y = __shfl_xor_sync(0xffffffffu, x, distance);
    return lane & distance ? (x & ~mask) | (y >> distance & mask) : (x & mask) | (y << distance & ~mask);
}

extern "C" __global__ void bit_transpose(const unsigned *in, unsigned *out)
{
    const int lane = threadIdx.x;
    unsigned x = in[blockIdx.x * 32 + lane];
    // A lower lane keeps its low columns and takes the other's low columns as its high ones.
    x = exchange(x, lane, 16, 0x0000ffffu);
    x = exchange(x, lane, 8, 0x00ff00ffu);
    x = exchange(x, lane, 4, 0x0f0f0f0fu);
    x = exchange(x, lane, 2, 0x33333333u);
    x = exchange(x, lane, 1, 0x55555555u);
    out[blockIdx.x * 32 + lane] = x;
}
