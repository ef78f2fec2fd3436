// where[i] = the first column of row i that holds `key`, or -1; a thread that has found it leaves from within
// the loop.
// Launch: any grid and block of one dimension with at least `rows` threads.
extern "C" __global__ void find_first(const int *table, int *where, int rows, int columns, int key)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows)
        return;
    const int *row = table + i * columns;
#pragma unroll 1
    for (int k = 0; k < columns; k++) {
        if (row[k] == key) {
            where[i] = k;
            return;
        }
    }
    where[i] = -1;
}
