// Powers of a small matrix modulo m: walks of a given length in a graph; a thread an entry.
extern "C" __global__ void matrix_power(const unsigned *matrix, unsigned *out, unsigned exponent, unsigned m)
{
    __shared__ unsigned base[8][8], result[8][8];
    int i = threadIdx.y, j = threadIdx.x, n = blockDim.x;
    base[i][j] = matrix[i * n + j] % m;
    result[i][j] = i == j ? 1 % m : 0;
    __syncthreads();
    while (exponent) {
        unsigned long long product = 0, square = 0;
        for (int k = 0; k < n; k++) {
            product += (unsigned long long)result[i][k] * base[k][j] % m;
            square += (unsigned long long)base[i][k] * base[k][j] % m;
        }
        __syncthreads();
        if (exponent & 1)
            result[i][j] = (unsigned)(product % m);
        base[i][j] = (unsigned)(square % m);
        __syncthreads();
        exponent >>= 1;
    }
    out[i * n + j] = result[i][j];
}
