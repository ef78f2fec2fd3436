// && and || do not load what they need not.
// launch: 1 5 i32[]:5,0,7,-2,1 i32[5] i32:3
// expect: [5, 0, 7, -2, 1] ; [1, 0, 1, 2, 2]
extern "C" __global__ void conditions(const int *x, int *out, int n)
{
    int i = threadIdx.x;
    if (i < n && x[i] > 4)
        out[i] = 1;
    else if (i >= n || x[i] < -4)
        out[i] = 2;
}
