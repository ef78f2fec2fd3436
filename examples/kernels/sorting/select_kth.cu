// The k-th smallest key by deciding its bits from the top, each with one count over the block.
extern "C" __global__ void select_kth(const unsigned *keys, unsigned *out, int k, int n)
{
    int t = threadIdx.x;
    unsigned prefix = 0;
    for (int bit = 31; bit >= 0; bit--) {
        unsigned high = 0xffffffffu << bit;
        bool candidate = t < n && (keys[t] & high) == prefix;
        int zeros = __syncthreads_count(candidate);
        if (k >= zeros) {
            k -= zeros;
            prefix |= 1u << bit;
        }
    }
    if (t == 0)
        *out = prefix;
}
