// Bitonic sort of the 32 keys of a warp in registers.
template <typename T>
__device__ T compare_exchange(T x, int mask, bool up)
{
    T y = __shfl_xor_sync(0xffffffffu, x, mask);
    return (x < y) == up ? y : x;
}

extern "C" __global__ void bitonic_warp(unsigned *keys)
{
    const int lane = threadIdx.x & 31;
    unsigned x = keys[blockIdx.x * 32 + lane];
#pragma unroll
    for (int size = 2; size <= 32; size *= 2)
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2)
            x = compare_exchange(x, stride, ((lane & stride) != 0) != ((lane & size) != 0));
    keys[blockIdx.x * 32 + lane] = x;
}
