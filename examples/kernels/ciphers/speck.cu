// Speck 64/96: rounds with a key schedule that runs along, addition and rotation by eight and three.
#define ROR(x, r) (((x) >> (r)) | ((x) << (32 - (r))))
#define ROL(x, r) (((x) << (r)) | ((x) >> (32 - (r))))
#define R(x, y, k) (x = ROR(x, 8), x += y, x ^= k, y = ROL(y, 3), y ^= x)

extern "C" __global__ void speck(const uint2 *plain, const uint3 *keys, uint2 *cipher)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = plain[i].x, x = plain[i].y;
    uint3 key = keys[i];
    unsigned a = key.x, l[2] = {key.y, key.z};
    for (int round = 0; round < 26; round++) {
        R(x, y, a);
        R(l[round & 1], a, round);
    }
    cipher[i] = make_uint2(y, x);
}
