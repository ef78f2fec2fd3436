// For each word the first word that is an anagram of it: letters counted in packed fields of four bits.
struct Letters {
    unsigned long long low, high;
};

__device__ Letters count(const char *word, int width)
{
    Letters c = {0, 0};
    for (int i = 0; i < width && word[i]; i++) {
        int letter = word[i] - 'a';
        if (letter < 13)
            c.low += 1ull << 4 * letter;
        else
            c.high += 1ull << 4 * (letter - 13);
    }
    return c;
}

extern "C" __global__ void anagrams(const char *words, int width, int *first)
{
    __shared__ Letters letters[32];
    int i = threadIdx.x;
    letters[i] = count(words + i * width, width);
    __syncthreads();
    int k = 0;
    while (letters[k].low != letters[i].low || letters[k].high != letters[i].high)
        k++;
    first[i] = k;
}
