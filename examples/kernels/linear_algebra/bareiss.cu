// Determinants of small matrices of integers by Bareiss's elimination without fractions, a matrix a thread.
#define N 4

extern "C" __global__ void bareiss(const int *matrices, long long *out, int count)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count)
        return;
    long long m[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            m[i][j] = matrices[t * N * N + i * N + j];
    long long previous = 1;
    int sign = 1;
    for (int k = 0; k < N - 1; k++) {
        if (m[k][k] == 0) {
            int swap = k + 1;
            while (swap < N && m[swap][k] == 0)
                swap++;
            if (swap == N) {
                out[t] = 0;
                return;
            }
            for (int j = 0; j < N; j++) {
                long long x = m[k][j];
                m[k][j] = m[swap][j];
                m[swap][j] = x;
            }
            sign = -sign;
        }
        for (int i = k + 1; i < N; i++)
            for (int j = k + 1; j < N; j++)
                m[i][j] = (m[i][j] * m[k][k] - m[i][k] * m[k][j]) / previous;
        previous = m[k][k];
    }
    out[t] = sign * m[N - 1][N - 1];
}
