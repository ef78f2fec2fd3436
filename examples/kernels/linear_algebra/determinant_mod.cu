// A determinant modulo a prime by elimination with a search for the pivot; a thread a column.
#define MAX_N 12

__device__ unsigned power(unsigned long long base, unsigned e, unsigned p)
{
    unsigned long long result = 1;
    while (e) {
        if (e & 1)
            result = result * base % p;
        base = base * base % p;
        e >>= 1;
    }
    return (unsigned)result;
}

extern "C" __global__ void determinant_mod(const int *matrix, unsigned *out, int n, unsigned p)
{
    __shared__ unsigned m[MAX_N][MAX_N];
    __shared__ int pivot;
    int j = threadIdx.x;
    for (int i = 0; i < n; i++) {
        int x = matrix[(blockIdx.x * n + i) * n + j] % (int)p;
        m[i][j] = x < 0 ? x + p : x;
    }
    unsigned long long determinant = 1;
    for (int k = 0; k < n; k++) {
        __syncthreads();
        if (j == 0) {
            pivot = k;
            while (pivot < n && m[pivot][k] == 0)
                pivot++;
        }
        __syncthreads();
        if (pivot == n) {
            determinant = 0;
            break;
        }
        if (pivot != k) {
            unsigned t = m[k][j];
            m[k][j] = m[pivot][j];
            m[pivot][j] = t;
            determinant = p - determinant;
        }
        __syncthreads();
        unsigned top = m[k][k];
        determinant = determinant * top % p;
        unsigned inverse = power(top, p - 2, p);
        unsigned mine = (unsigned long long)m[k][j] * inverse % p;
        for (int i = k + 1; i < n; i++) {
            unsigned factor = m[i][k];
            __syncthreads();
            m[i][j] = (m[i][j] + (unsigned long long)(p - factor) * mine) % p;
        }
    }
    if (j == 0)
        out[blockIdx.x] = (unsigned)determinant;
}
