// Pearson hashing with a permutation of bytes that the block shuffles first, as RC4 schedules its key.
extern "C" __global__ void pearson(const unsigned char *key, int key_length, const unsigned char *text,
                                   int width,
                                   unsigned char *out)
{
    __shared__ unsigned char box[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        box[i] = (unsigned char)i;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned char j = 0;
        for (int i = 0; i < 256; i++) {
            j += box[i] + key[i % key_length];
            unsigned char t = box[i];
            box[i] = box[j];
            box[j] = t;
        }
    }
    __syncthreads();
    unsigned char hash = 0;
    for (int i = 0; i < width; i++)
        hash = box[hash ^ text[threadIdx.x * width + i]];
    out[threadIdx.x] = hash;
}
