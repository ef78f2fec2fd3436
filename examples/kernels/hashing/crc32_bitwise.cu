// CRC-32 bit by bit; the table of a nibble is built in shared memory first, and both ways must agree.
#define POLYNOMIAL 0xEDB88320u

__device__ unsigned step(unsigned crc, int bits)
{
    while (bits--)
        crc = (crc >> 1) ^ (POLYNOMIAL & (0u - (crc & 1u)));
    return crc;
}

extern "C" __global__ void crc32_bitwise(const unsigned char *data, unsigned *crcs, int *agree, int width)
{
    __shared__ unsigned nibble[16];
    for (int i = threadIdx.x; i < 16; i += blockDim.x)
        nibble[i] = step(i, 4);
    __syncthreads();
    unsigned slow = ~0u, fast = ~0u;
    const unsigned char *row = data + threadIdx.x * width;
    for (int i = 0; i < width; i++) {
        slow = step(slow ^ row[i], 8);
        fast = nibble[(fast ^ row[i]) & 15] ^ (fast >> 4);
        fast = nibble[(fast ^ (row[i] >> 4)) & 15] ^ (fast >> 4);
    }
    crcs[threadIdx.x] = ~slow;
    agree[threadIdx.x] = slow == fast;
}
