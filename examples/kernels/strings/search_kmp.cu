// Knuth, Morris and Pratt: the failure function once per block, then each thread scans a row.
#define MAX_PATTERN 16

extern "C" __global__ void search_kmp(const char *rows, int width, const char *pattern, int m, int *first,
                                      int *count)
{
    __shared__ int failure[MAX_PATTERN];
    if (threadIdx.x == 0) {
        failure[0] = 0;
        int k = 0;
        for (int i = 1; i < m; i++) {
            while (k > 0 && pattern[i] != pattern[k])
                k = failure[k - 1];
            if (pattern[i] == pattern[k])
                k++;
            failure[i] = k;
        }
    }
    __syncthreads();
    const char *row = rows + threadIdx.x * width;
    int state = 0, hits = 0, where = -1;
    for (int i = 0; i < width && row[i]; i++) {
        while (state > 0 && (state == m || row[i] != pattern[state]))
            state = failure[state - 1];
        if (row[i] == pattern[state])
            state++;
        if (state == m) {
            if (hits++ == 0)
                where = i - m + 1;
        }
    }
    first[threadIdx.x] = where;
    count[threadIdx.x] = hits;
}
