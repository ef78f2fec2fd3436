// Run-length encoding of bytes in one block: run starts by comparison, places by a scan, lengths by
// differences.
extern "C" __global__ void run_length_encode(const unsigned char *in, int n, unsigned char *symbols,
                                             int *lengths, int *runs)
{
    __shared__ int place[64], start[65];
    int i = threadIdx.x;
    bool head = i < n && (i == 0 || in[i] != in[i - 1]);
    place[i] = head;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d <<= 1) {
        int left = i >= d ? place[i - d] : 0;
        __syncthreads();
        place[i] += left;
        __syncthreads();
    }
    int total = place[blockDim.x - 1];
    if (head) {
        start[place[i] - 1] = i;
        symbols[place[i] - 1] = in[i];
    }
    if (i == 0) {
        start[total] = n;
        *runs = total;
    }
    __syncthreads();
    if (i < total)
        lengths[i] = start[i + 1] - start[i];
}
