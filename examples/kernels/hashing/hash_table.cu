// A hash table with open addressing in shared memory: insertion with compare-and-swap, counts per key, look-
// ups.
#define SLOTS 64
#define EMPTY 0xffffffffu

__device__ unsigned hash(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__device__ void insert(unsigned *keys, unsigned *counts, unsigned key)
{
    unsigned slot = hash(key) % SLOTS;
    while (true) {
        unsigned old = atomicCAS(&keys[slot], EMPTY, key);
        if (old == EMPTY || old == key) {
            atomicAdd(&counts[slot], 1u);
            return;
        }
        slot = (slot + 1) % SLOTS;
    }
}

__device__ int find(const unsigned *keys, unsigned key)
{
    for (unsigned slot = hash(key) % SLOTS;; slot = (slot + 1) % SLOTS) {
        if (keys[slot] == key)
            return slot;
        if (keys[slot] == EMPTY)
            return -1;
    }
}

extern "C" __global__ void hash_table(const unsigned *words, int n, const unsigned *queries, int *answers,
                                      int m)
{
    __shared__ unsigned keys[SLOTS], counts[SLOTS];
    for (int i = threadIdx.x; i < SLOTS; i += blockDim.x) {
        keys[i] = EMPTY;
        counts[i] = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        insert(keys, counts, words[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x) {
        int slot = find(keys, queries[i]);
        answers[i] = slot < 0 ? 0 : counts[slot];
    }
}
