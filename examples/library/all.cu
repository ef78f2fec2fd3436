// out[0] = 0 if an element of a is 0: begin with 1.
extern "C" __global__ void all(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (a[i] == 0)
            out[0] = 0;
    }
}
