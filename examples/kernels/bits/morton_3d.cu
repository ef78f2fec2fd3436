// Thirty-bit Morton codes of a three-dimensional grid of threads.
__device__ __forceinline__ unsigned expand_bits(unsigned v)
{
    v = (v * 0x00010001u) & 0xFF0000FFu;
    v = (v * 0x00000101u) & 0x0F00F00Fu;
    v = (v * 0x00000011u) & 0xC30C30C3u;
    v = (v * 0x00000005u) & 0x49249249u;
    return v;
}

extern "C" __global__ void morton_3d(unsigned *codes, unsigned scale)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    unsigned width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    unsigned code = expand_bits(x * scale) * 4 + expand_bits(y * scale) * 2 + expand_bits(z * scale);
    codes[(z * height + y) * width + x] = code;
}
