// The Burrows-Wheeler transform of a short text: rotations are ranked by comparing every pair.
__device__ int compare_rotations(const char *text, int n, int a, int b)
{
    for (int k = 0; k < n; k++) {
        int difference = text[(a + k) % n] - text[(b + k) % n];
        if (difference)
            return difference;
    }
    return a - b;
}

extern "C" __global__ void burrows_wheeler(const char *text, int n, char *last, int *primary)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int rank = 0;
    for (int other = 0; other < n; other++)
        if (other != i && compare_rotations(text, n, other, i) < 0)
            rank++;
    last[rank] = text[(i + n - 1) % n];
    if (i == 0)
        *primary = rank;
}
