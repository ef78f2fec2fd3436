// y[i] = alpha * x[i] + y[i] for i < n, in place, one thread per element.
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void saxpy(int alpha, const int *x, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = alpha * x[i] + y[i];
}
