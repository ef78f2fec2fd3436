// Wildcards: * for any run and ? for any character, with one point of backtracking.
__device__ bool matches(const char *pattern, const char *text)
{
    const char *star = nullptr, *mark = nullptr;
    while (*text) {
        if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (*pattern == '*') {
            star = pattern++;
            mark = text;
        } else if (star) {
            pattern = star + 1;
            text = ++mark;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

extern "C" __global__ void glob_match(const char *patterns, const char *texts, int stride,
                                      unsigned char *result)
{
    int column = threadIdx.x, row = threadIdx.y;
    result[row * blockDim.x + column] = matches(patterns + row * stride, texts + column * stride);
}
