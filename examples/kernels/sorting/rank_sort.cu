// Sort by counting for each key how many go before it, in tiles of shared memory.
extern "C" __global__ void rank_sort(const short *keys, short *sorted, int *permutation, int n)
{
    __shared__ short tile[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    short key = i < n ? keys[i] : 0;
    int rank = 0;
    for (int first = 0; first < n; first += blockDim.x) {
        int k = first + threadIdx.x;
        tile[threadIdx.x] = k < n ? keys[k] : 32767;
        __syncthreads();
        int size = min((int)blockDim.x, n - first);
        for (int j = 0; j < size; j++)
            if (tile[j] < key || (tile[j] == key && first + j < i))
                rank++;
        __syncthreads();
    }
    if (i < n) {
        sorted[rank] = key;
        permutation[rank] = i;
    }
}
