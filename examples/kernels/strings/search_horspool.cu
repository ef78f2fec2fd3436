// Boyer, Moore and Horspool: a shift for each of 128 characters, then every thread searches its part of the
// text.
extern "C" __global__ void search_horspool(const unsigned char *text, int n, const unsigned char *pattern,
                                           int m, int part,
                                           int *places, int *comparisons)
{
    __shared__ unsigned char shift[128];
    for (int c = threadIdx.x; c < 128; c += blockDim.x)
        shift[c] = m;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 0; k < m - 1; k++)
            shift[pattern[k] & 127] = m - 1 - k;
    __syncthreads();
    int start = threadIdx.x * part;
    int last = min(start + part - 1, n - m);
    int steps = 0, place = -1;
    for (int i = start; i <= last; i += shift[text[i + m - 1] & 127]) {
        steps++;
        int k = m - 1;
        while (k >= 0 && text[i + k] == pattern[k])
            k--;
        if (k < 0) {
            place = i;
            break;
        }
    }
    places[threadIdx.x] = place;
    comparisons[threadIdx.x] = steps;
}
