// c[i] = a[i] + b[i] for i < n, one thread per element.
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void vecadd(const int *a, const int *b, int *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
