// The old value of an atomic addition or exclusive or; threads take their turns in order.
// launch: 1 4 i32[]:10,6 i32[4] i32[4]
// expect: [14, 6 ^ 0 ^ 1 ^ 2 ^ 3] ; [10, 11, 12, 13] ; [6, 6, 6 ^ 1, 6 ^ 1 ^ 2]
extern "C" __global__ void tickets(int *counter, int *old, int *mask)
{
    int i = threadIdx.x;
    old[i] = atomicAdd(&counter[0], 1);
    mask[i] = atomicXor(&counter[1], i);
}
