// All places where a pattern begins in a text, overlapping ones too: a thread a place; a count and a flag
// each.
extern "C" __global__ void search_naive(const char *text, int n, const char *pattern, int m,
                                        unsigned char *found, int *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + m > n)
        return;
    bool match = true;
    for (int k = 0; k < m; k++)
        if (text[i + k] != pattern[k]) {
            match = false;
            break;
        }
    found[i] = match;
    if (match)
        atomicAdd(count, 1);
}
