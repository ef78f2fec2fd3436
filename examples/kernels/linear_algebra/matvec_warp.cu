// A matrix times a vector: a warp a row, sums by shuffles; the vector in shared memory.
extern "C" __global__ void matvec_warp(const int *matrix, const int *vector, long long *out, int rows,
                                       int columns)
{
    extern __shared__ int x[];
    for (int k = threadIdx.x; k < columns; k += blockDim.x)
        x[k] = vector[k];
    __syncthreads();
    int lane = threadIdx.x & 31;
    for (int row = threadIdx.x >> 5; row < rows; row += blockDim.x >> 5) {
        long long sum = 0;
        for (int k = lane; k < columns; k += 32)
            sum += (long long)matrix[row * columns + k] * x[k];
        for (int d = 16; d > 0; d /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, d);
        if (lane == 0)
            out[row] = sum;
    }
}
