// A sparse matrix in rows times a vector, a row a thread.
extern "C" __global__ void spmv_csr(int num_rows, const int *ptr, const int *indices, const int *data,
                                    const int *x, int *y)
{
    int row = blockDim.x * blockIdx.x + threadIdx.x;
    if (row < num_rows) {
        int dot = 0;
        int row_start = ptr[row];
        int row_end = ptr[row + 1];
        for (int jj = row_start; jj < row_end; jj++)
            dot += data[jj] * x[indices[jj]];
        y[row] += dot;
    }
}
