// Sub-warps of eight lanes: broadcasts, rotations and prefix products within them, and swaps between
// neighbours.
extern "C" __global__ void broadcast_rows(const int *in, int *first, int *rotated, int *product,
                                          long long *swapped)
{
    int i = threadIdx.x, lane = i & 7;
    int x = in[i];
    first[i] = __shfl_sync(0xffffffffu, x, 0, 8);
    rotated[i] = __shfl_sync(0xffffffffu, x, lane + 1, 8);
    int p = x;
    for (int d = 1; d < 8; d *= 2) {
        int left = __shfl_up_sync(0xffffffffu, p, d, 8);
        if (lane >= d)
            p *= left;
    }
    product[i] = p;
    long long wide = (long long)x << 33 | i;
    swapped[i] = __shfl_xor_sync(0xffffffffu, wide, 1);
}
