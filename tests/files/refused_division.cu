// The machine has no division; the refusal says where.
// error: refused_division.cu:6:5: error: cannot generate code for 'sdiv' on i32
extern "C" __global__ void divide(int *x, int n)
{
    int i = threadIdx.x;
    x[i] = x[i] / n;
}
