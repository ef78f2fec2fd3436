// A barrier that some threads reach while others wait at the next one is a fault; threads that have returned
// do not count.
// launch: 1 4 i32[4] i32:2
// fault: barrier thread 2,0,0 line 14
// launch: 1 4 i32[4] i32:9
// expect: [2, 2, 2, 0]
extern "C" __global__ void barrier(int *out, int n)
{
    int i = threadIdx.x;
    if (i == 3)
        return;
    if (i < n) {
        out[i] = 1;
        __syncthreads();
    }
    out[i] += 1;
    __syncthreads();
}
