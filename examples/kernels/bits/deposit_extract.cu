// Parallel bit deposit and extract, which CUDA lacks: loops over the mask's ones.
__device__ unsigned extract(unsigned value, unsigned mask)
{
    unsigned result = 0;
    for (unsigned bit = 1; mask; bit += bit) {
        unsigned lowest = mask & -mask;
        if (value & lowest)
            result |= bit;
        mask ^= lowest;
    }
    return result;
}

__device__ unsigned deposit(unsigned value, unsigned mask)
{
    unsigned result = 0;
    for (unsigned bit = 1; mask; bit += bit) {
        unsigned lowest = mask & -mask;
        if (value & bit)
            result |= lowest;
        mask ^= lowest;
    }
    return result;
}

extern "C" __global__ void deposit_extract(const unsigned *values, const unsigned *masks, unsigned *packed,
                                           unsigned *spread)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    packed[i] = extract(values[i], masks[i]);
    spread[i] = deposit(values[i], masks[i]);
}
