// RC4 key streams, a key a thread block, with the state in shared memory and the set-up spread over the
// block.
extern "C" __global__ void rc4(const unsigned char *keys, int key_length, unsigned char *stream, int length)
{
    __shared__ unsigned char state[256];
    const unsigned char *key = keys + blockIdx.x * key_length;
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        state[i] = i;
    __syncthreads();
    if (threadIdx.x)
        return;
    int j = 0;
    for (int i = 0; i < 256; i++) {
        j = (j + state[i] + key[i % key_length]) & 255;
        unsigned char t = state[i];
        state[i] = state[j];
        state[j] = t;
    }
    int a = 0, b = 0;
    for (int k = 0; k < length; k++) {
        a = (a + 1) & 255;
        b = (b + state[a]) & 255;
        unsigned char t = state[a];
        state[a] = state[b];
        state[b] = t;
        stream[blockIdx.x * length + k] = state[(state[a] + state[b]) & 255];
    }
}
