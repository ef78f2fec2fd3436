// An atomic goes to the one buffer, even where both parameters are the same.
// launch: 1 6 i32[1] i32[1]
// expect: [1 + 3 + 5] ; [0 + 2 + 4]
extern "C" __global__ void count(int *a, int *b)
{
    int i = threadIdx.x;
    atomicAdd(i & 1 ? a : b, i);
}
