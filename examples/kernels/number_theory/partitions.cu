// The number of partitions of each number into parts of at most a thread's size, a row after another.
extern "C" __global__ void partitions(unsigned *table, int n)
{
    __shared__ unsigned row[64];
    int i = threadIdx.x;
    row[i] = i == 0;
    __syncthreads();
    for (int part = 1; part <= n; part++) {
        unsigned sum = 0;
        for (int rest = i; rest >= 0; rest -= part)
            sum += row[rest];
        __syncthreads();
        row[i] = sum;
        table[(part - 1) * blockDim.x + i] = sum;
        __syncthreads();
    }
}
