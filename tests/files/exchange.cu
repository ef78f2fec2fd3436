// The old value of an exchange, which does not follow from the new one; threads take their turns in order.
// launch: 1 4 i32[]:10 i32[4]
// expect: [3] ; [10, 0, 1, 2]
extern "C" __global__ void exchange(int *x, int *out)
{
    out[threadIdx.x] = atomicExch(x, threadIdx.x);
}
