// A function in pieces, for branches within branches that the threads of a warp take differently:
//   x < 0, odd        out[i] = -x
//   x < 0, even       out[i] = x + b[i]
//   x = 0             out[i] stays as it is, and zeros[0] is counted up
//   0 < x < limit     out[i] = x * b[i]
//   otherwise         out[i] = limit, and b[i] = x - limit
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void piecewise(const int *a, int *b, int *out, int *zeros, int limit, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i];
    if (x < 0) {
        if (x & 1)
            out[i] = -x;
        else
            out[i] = x + b[i];
    } else if (x == 0) {
        atomicAdd(zeros, 1);
    } else {
        if (x < limit) {
            out[i] = x * b[i];
        } else {
            out[i] = limit;
            b[i] = x - limit;
        }
    }
}
