// Reservoir sampling of k items from a stream, with middle-square Weyl numbers; one stream a thread.
#define K 3

extern "C" __global__ void reservoir_sample(const int *stream, int length, unsigned long long salt,
                                            int *sample)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    const int *items = stream + t * length;
    int kept[K];
    unsigned long long x = 0, w = 0, s = (salt + 2 * t) | 1;
    for (int i = 0; i < length; i++) {
        if (i < K) {
            kept[i] = items[i];
            continue;
        }
        x *= x;
        x += (w += s);
        x = (x >> 32) | (x << 32);
        unsigned j = (unsigned)x % (unsigned)(i + 1);
        if (j < K)
            kept[j] = items[i];
    }
    for (int i = 0; i < K; i++)
        sample[t * K + i] = kept[i];
}
