// The old value of an exchange does not follow from the new one, which is all that a block gives.
// error: the old value does not follow from the new one
extern "C" __global__ void exchange(int *x, int *out)
{
    out[threadIdx.x] = atomicExch(x, threadIdx.x);
}
