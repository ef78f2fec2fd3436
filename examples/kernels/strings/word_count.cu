// Words of a text, its longest word and its lines: every thread looks at the borders in its own part.
extern "C" __global__ void word_count(const char *text, int n, int *words, int *lines, int *longest)
{
    int stride = blockDim.x * gridDim.x;
    int word_starts = 0, breaks = 0, top = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        bool space = text[i] == ' ' || text[i] == '\n';
        bool before = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n';
        breaks += text[i] == '\n';
        if (space || !before)
            continue;
        word_starts++;
        int end = i;
        while (end < n && text[end] != ' ' && text[end] != '\n')
            end++;
        if (end - i > top)
            top = end - i;
    }
    if (word_starts)
        atomicAdd(words, word_starts);
    if (breaks)
        atomicAdd(lines, breaks);
    atomicMax(longest, top);
}
