// A lock that some threads wait for, longer from try to try: the first try stands before the loop.
// launch: 2 5 i32[]:3,-1,4,1,-5,9,-2,6,5,3 i32[2]
// expect: [3, -1, 4, 1, -5, 9, -2, 6, 5, 3] ; [1 + 9 + 6 + 3, 3]
__device__ int mutex;

extern "C" __global__ void sum(const int *a, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0 || i == 2 || i == 8)
        return;
    unsigned pause = 8;
    while (atomicCAS(&mutex, 0, 1) != 0) {
        __nanosleep(pause);
        if (pause < 256)
            pause *= 2;
    }
    if (a[i] > 0)
        out[0] += a[i];
    else
        out[1] += 1;
    __threadfence();
    atomicExch(&mutex, 0);
}
