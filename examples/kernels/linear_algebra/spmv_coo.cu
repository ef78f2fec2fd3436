// A sparse matrix as triples times a vector: products are added up along runs of one row by a segmented scan.
struct Entry {
    int row, column, value;
};

extern "C" __global__ void spmv_coo(const Entry *entries, int n, const int *x, int *y)
{
    int lane = threadIdx.x;
    for (int first = 0; first < n; first += 32) {
        int i = first + lane;
        bool valid = i < n;
        int row = valid ? entries[i].row : -1;
        int product = valid ? entries[i].value * x[entries[i].column] : 0;
        for (int d = 1; d < 32; d <<= 1) {
            int other_row = __shfl_up_sync(~0u, row, d);
            int other = __shfl_up_sync(~0u, product, d);
            if (lane >= d && other_row == row)
                product += other;
        }
        int next_row = __shfl_down_sync(~0u, row, 1);
        if (valid && (lane == 31 || next_row != row))
            atomicAdd(&y[row], product);
    }
}
