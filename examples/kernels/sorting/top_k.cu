// The k largest numbers of each row, largest first, by a short list that each thread keeps in order.
#define K 4

extern "C" __global__ void top_k(const int *table, int *out, int columns)
{
    int row = threadIdx.x;
    int best[K] = {-2147483647 - 1, -2147483647 - 1, -2147483647 - 1, -2147483647 - 1};
    for (int c = 0; c < columns; c++) {
        int x = table[row * columns + c];
        if (x <= best[K - 1])
            continue;
        int k = K - 1;
        while (k > 0 && best[k - 1] < x) {
            best[k] = best[k - 1];
            k--;
        }
        best[k] = x;
    }
#pragma unroll
    for (int k = 0; k < K; k++)
        out[row * K + k] = best[k];
}
