// The warp-wide reductions of compute capability 8.0 over parts of a warp.
extern "C" __global__ void reduce_intrinsics(const unsigned *in, unsigned *out, int split)
{
    int lane = threadIdx.x;
    unsigned below = (1u << split) - 1u;
    if (lane < split) {
        unsigned sum = __reduce_add_sync(below, in[lane]);
        unsigned parity = __reduce_xor_sync(below, in[lane]);
        out[lane] = sum ^ parity;
    } else {
        unsigned low = __reduce_min_sync(~below, in[lane]);
        unsigned high = __reduce_max_sync(~below, in[lane]);
        out[lane] = high - low;
    }
}
