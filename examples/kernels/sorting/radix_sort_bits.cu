// Least significant digit radix sort, one bit a pass: zeros keep to the left, ones to the right.
__device__ unsigned scan_exclusive(unsigned flag, unsigned *buffer)
{
    int t = threadIdx.x;
    buffer[t] = flag;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d <<= 1) {
        unsigned x = t >= d ? buffer[t - d] : 0;
        __syncthreads();
        buffer[t] += x;
        __syncthreads();
    }
    return buffer[t] - flag;
}

extern "C" __global__ void radix_sort_bits(unsigned *keys, unsigned *payload, int bits)
{
    __shared__ unsigned buffer[64], sorted_keys[64], sorted_values[64];
    int t = threadIdx.x, n = blockDim.x;
    unsigned key = keys[t], value = payload[t];
    for (int bit = 0; bit < bits; bit++) {
        unsigned zero = ~(key >> bit) & 1u;
        unsigned zeros_before = scan_exclusive(zero, buffer);
        unsigned zeros = buffer[n - 1];
        unsigned place = zero ? zeros_before : zeros + t - zeros_before;
        sorted_keys[place] = key;
        sorted_values[place] = value;
        __syncthreads();
        key = sorted_keys[t];
        value = sorted_values[t];
        __syncthreads();
    }
    keys[t] = key;
    payload[t] = value;
}
