// Morton codes of two coordinates in 64 bits, and the coordinates of the code's neighbour to the right.
typedef unsigned long long u64;

__device__ u64 spread(unsigned v)
{
    u64 x = v;
    x = (x | (x << 16)) & 0x0000FFFF0000FFFFull;
    x = (x | (x << 8)) & 0x00FF00FF00FF00FFull;
    x = (x | (x << 4)) & 0x0F0F0F0F0F0F0F0Full;
    x = (x | (x << 2)) & 0x3333333333333333ull;
    return (x | (x << 1)) & 0x5555555555555555ull;
}

__device__ unsigned gather(u64 x)
{
    x &= 0x5555555555555555ull;
    x = (x | (x >> 1)) & 0x3333333333333333ull;
    x = (x | (x >> 2)) & 0x0F0F0F0F0F0F0F0Full;
    x = (x | (x >> 4)) & 0x00FF00FF00FF00FFull;
    x = (x | (x >> 8)) & 0x0000FFFF0000FFFFull;
    return (unsigned)(x | (x >> 16));
}

extern "C" __global__ void morton_2d(const uint2 *points, u64 *codes, uint2 *neighbours)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint2 p = points[i];
    u64 code = spread(p.x) | spread(p.y) << 1;
    codes[i] = code;
    // Adding one to x alone: the bits of y are filled with ones, so that carries pass through them.
    const u64 ys = 0xAAAAAAAAAAAAAAAAull;
    u64 right = (((code | ys) + 1) & ~ys) | (code & ys);
    neighbours[i] = make_uint2(gather(right), gather(right >> 1));
}
