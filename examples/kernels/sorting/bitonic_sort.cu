// Bitonic sort of a power of two of keys in shared memory.
extern "C" __global__ void bitonic_sort(int *data, int n)
{
    extern __shared__ int keys[];
    const unsigned int tid = threadIdx.x;
    keys[tid] = data[tid];
    __syncthreads();
    for (unsigned int k = 2; k <= n; k <<= 1) {
        for (unsigned int j = k >> 1; j > 0; j >>= 1) {
            unsigned int ixj = tid ^ j;
            if (ixj > tid) {
                bool ascending = (tid & k) == 0;
                if ((keys[tid] > keys[ixj]) == ascending) {
                    int swap = keys[tid];
                    keys[tid] = keys[ixj];
                    keys[ixj] = swap;
                }
            }
            __syncthreads();
        }
    }
    data[tid] = keys[tid];
}
