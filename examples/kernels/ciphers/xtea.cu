// XTEA, both ways: encrypt a block, keep it, decrypt it again.
__device__ uint2 encipher(uint2 v, const unsigned *k)
{
    unsigned sum = 0;
    for (int i = 0; i < 32; i++) {
        v.x += (((v.y << 4) ^ (v.y >> 5)) + v.y) ^ (sum + k[sum & 3]);
        sum += 0x9E3779B9u;
        v.y += (((v.x << 4) ^ (v.x >> 5)) + v.x) ^ (sum + k[(sum >> 11) & 3]);
    }
    return v;
}

__device__ uint2 decipher(uint2 v, const unsigned *k)
{
    unsigned sum = 0x9E3779B9u * 32;
    for (int i = 0; i < 32; i++) {
        v.y -= (((v.x << 4) ^ (v.x >> 5)) + v.x) ^ (sum + k[(sum >> 11) & 3]);
        sum -= 0x9E3779B9u;
        v.x -= (((v.y << 4) ^ (v.y >> 5)) + v.y) ^ (sum + k[sum & 3]);
    }
    return v;
}

extern "C" __global__ void xtea(const uint2 *plain, const unsigned *key, uint2 *cipher, uint2 *back)
{
    __shared__ unsigned k[4];
    int i = threadIdx.x;
    if (i == 0)
        for (int j = 0; j < 4; j++)
            k[j] = key[j];
    __syncthreads();
    cipher[i] = encipher(plain[i], k);
    back[i] = decipher(cipher[i], k);
}
