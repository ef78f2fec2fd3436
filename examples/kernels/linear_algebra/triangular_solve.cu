// Forward substitution modulo a prime: x_i is known after i steps; threads take the rows below.
extern "C" __global__ void triangular_solve(const unsigned *lower, const unsigned *b, unsigned *x, int n,
                                            unsigned p)
{
    __shared__ unsigned solution;
    int row = threadIdx.x;
    unsigned long long rest = b[row] % p;
    for (int k = 0; k < n; k++) {
        if (row == k) {
            unsigned long long inverse = 1, base = lower[k * n + k] % p;
            for (unsigned e = p - 2; e; e >>= 1) {
                if (e & 1)
                    inverse = inverse * base % p;
                base = base * base % p;
            }
            solution = (unsigned)(rest * inverse % p);
            x[k] = solution;
        }
        __syncthreads();
        if (row > k)
            rest = (rest + (unsigned long long)(p - lower[row * n + k] % p) * solution) % p;
        __syncthreads();
    }
}
