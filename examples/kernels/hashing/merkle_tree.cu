// The root of a hash tree over leaves, level by level, with one-at-a-time as the hash of eight bytes.
__device__ unsigned one_at_a_time(unsigned left, unsigned right)
{
    unsigned hash = 0;
    for (int i = 0; i < 8; i++) {
        unsigned word = i < 4 ? left : right;
        hash += word >> 8 * (i % 4) & 0xff;
        hash += hash << 10;
        hash ^= hash >> 6;
    }
    hash += hash << 3;
    hash ^= hash >> 11;
    hash += hash << 15;
    return hash;
}

extern "C" __global__ void merkle_tree(const unsigned *leaves, unsigned *root, int n)
{
    extern __shared__ unsigned level[];
    int t = threadIdx.x;
    for (int i = t; i < n; i += blockDim.x)
        level[i] = leaves[i];
    while (n > 1) {
        __syncthreads();
        int parents = (n + 1) / 2;
        unsigned node = 0;
        if (t < parents) {
            unsigned left = level[2 * t];
            unsigned right = 2 * t + 1 < n ? level[2 * t + 1] : left;
            node = one_at_a_time(left, right);
        }
        __syncthreads();
        if (t < parents)
            level[t] = node;
        n = parents;
    }
    __syncthreads();
    if (t == 0)
        *root = level[0];
}
