// y[i] = x[i] where it is positive and 0 elsewhere, for i < n, one thread per element.
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void relu(const int *x, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] > 0 ? x[i] : 0;
}
