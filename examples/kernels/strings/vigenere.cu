// The Vigenere cipher over letters, both ways; other characters stay and use up no letter of the key.
extern "C" __global__ void vigenere(const char *text, int n, const char *key, int key_length, int direction,
                                    char *out)
{
    __shared__ int letters_before[64];
    int i = threadIdx.x;
    char c = i < n ? text[i] : ' ';
    bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    unsigned ballot = __ballot_sync(0xffffffffu, upper || lower);
    int before = __popc(ballot & ((1u << (i & 31)) - 1));
    if ((i & 31) == 0)
        letters_before[i >> 5] = __popc(ballot);
    __syncthreads();
    for (int w = 0; w < i >> 5; w++)
        before += letters_before[w];
    if (upper || lower) {
        char base = upper ? 'A' : 'a';
        int shift = (key[before % key_length] - 'a') * direction;
        c = base + (c - base + shift + 26) % 26;
    }
    if (i < n)
        out[i] = c;
}
