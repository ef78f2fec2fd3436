// out[0] = 1 if an element of a is not 0: begin with 0.
extern "C" __global__ void any(const int *a, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (a[i] != 0)
            out[0] = 1;
    }
}
