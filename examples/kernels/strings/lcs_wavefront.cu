// The longest common subsequence of two strings: the antidiagonals of the table, one after another.
#define MAX_SIDE 32

extern "C" __global__ void lcs_wavefront(const char *a, int na, const char *b, int nb, int *length)
{
    __shared__ short diagonals[3][MAX_SIDE + 1];
    int i = threadIdx.x;
    for (int d = 0; d < 3; d++)
        for (int k = i; k <= MAX_SIDE; k += blockDim.x)
            diagonals[d][k] = 0;
    __syncthreads();
    for (int d = 2; d <= na + nb; d++) {
        short *now = diagonals[d % 3], *before = diagonals[(d + 2) % 3], *earlier = diagonals[(d + 1) % 3];
        int j = d - (i + 1);
        if (i < na && j >= 1 && j <= nb) {
            if (a[i] == b[j - 1])
                now[i + 1] = earlier[i] + 1;
            else
                now[i + 1] = max(before[i], before[i + 1]);
        }
        __syncthreads();
    }
    if (i == 0)
        *length = diagonals[(na + nb) % 3][na];
}
