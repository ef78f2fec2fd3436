// Counting sort of letters: shared counters, prefix sums by one thread, then every letter fills its own run.
extern "C" __global__ void counting_sort(const char *text, char *out, int n)
{
    __shared__ int count[26], start[27];
    int t = threadIdx.x;
    if (t < 26)
        count[t] = 0;
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x)
        atomicAdd(&count[text[i] - 'a'], 1);
    __syncthreads();
    if (t == 0) {
        start[0] = 0;
        for (int c = 0; c < 26; c++)
            start[c + 1] = start[c] + count[c];
    }
    __syncthreads();
    if (t < 26)
        for (int i = start[t]; i < start[t + 1]; i++)
            out[i] = 'a' + t;
}
