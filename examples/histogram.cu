// counts[v] += how often v occurs among the n values, for 0 <= v < bins; other values are passed over.
// Launch: any grid and block of one dimension with at least n threads; they meet in atomics.
extern "C" __global__ void histogram(const int *values, int *counts, int n, int bins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int value = values[i];
    if (value >= 0 && value < bins)
        atomicAdd(&counts[value], 1);
}
