// Rabin and Karp: rolling hashes of each row's windows, compared with the pattern's, then checked.
#define BASE 257u
#define MODULUS 1000003u

extern "C" __global__ void search_rabin_karp(const unsigned char *rows, int width,
                                             const unsigned char *pattern, int m,
                                             unsigned *hashes, int *last)
{
    const unsigned char *row = rows + threadIdx.x * width;
    unsigned wanted = 0, window = 0, top = 1;
    for (int i = 0; i < m; i++) {
        wanted = (wanted * BASE + pattern[i]) % MODULUS;
        window = (window * BASE + row[i]) % MODULUS;
        if (i)
            top = top * BASE % MODULUS;
    }
    int found = -1;
    for (int i = 0;; i++) {
        if (window == wanted) {
            int k = 0;
            while (k < m && row[i + k] == pattern[k])
                ++k;
            if (k == m)
                found = i;
        }
        if (i + m >= width)
            break;
        window = (window + MODULUS - top * row[i] % MODULUS) % MODULUS;
        window = (window * BASE + row[i + m]) % MODULUS;
    }
    hashes[threadIdx.x] = window;
    last[threadIdx.x] = found;
}
