// Binomial coefficients modulo m, row by row in shared memory, and how many of a row are odd.
extern "C" __global__ void pascal_triangle(int *rows, int *odd, int m)
{
    __shared__ int line[33];
    int k = threadIdx.x, n = blockDim.x;
    line[k] = k == 0;
    for (int r = 0; r < n; r++) {
        __syncthreads();
        int above = line[k], left = k > 0 ? line[k - 1] : 0;
        rows[r * n + k] = above;
        __syncthreads();
        line[k] = (above + left) % m;
        if (k <= r && ((r - k) & k) == 0)
            atomicAdd(&odd[r], 1);
    }
}
