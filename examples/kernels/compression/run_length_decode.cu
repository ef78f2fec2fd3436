// Run-length decoding: each thread finds the run of its place by a binary search in the sums of lengths.
extern "C" __global__ void run_length_decode(const unsigned char *symbols, const int *lengths, int runs,
                                             unsigned char *out, int n)
{
    __shared__ int ends[32];
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int r = 0; r < runs; r++)
            ends[r] = sum += lengths[r];
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int low = 0, high = runs - 1;
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (ends[middle] > i)
                high = middle;
            else
                low = middle + 1;
        }
        out[i] = symbols[low];
    }
}
