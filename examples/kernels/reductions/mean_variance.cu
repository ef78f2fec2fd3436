// Mean and variance of each row in whole numbers, rounded towards zero; one warp a row.
extern "C" __global__ void mean_variance(const short *samples, int *mean, long long *variance, int columns)
{
    int row = blockIdx.x;
    int lane = threadIdx.x;
    int sum = 0;
    long long squares = 0;
    for (int k = lane; k < columns; k += 32) {
        int x = samples[row * columns + k];
        sum += x;
        squares += x * x;
    }
    for (int d = 16; d; d >>= 1) {
        sum += __shfl_down_sync(~0u, sum, d);
        squares += __shfl_down_sync(~0u, squares, d);
    }
    if (lane != 0)
        return;
    mean[row] = sum / columns;
    variance[row] = (squares - (long long)sum * sum / columns) / columns;
}
