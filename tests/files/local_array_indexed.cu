// A local array that a thread indexes lies in local memory, one a thread.
// launch: 1 5 i32[]:10,11,12,13,14,15,16,17 i32:3
// expect: [13, 14, 15, 16, 17, 15, 16, 17]
extern "C" __global__ void local(int *x, int n)
{
    int table[8];
    for (int i = 0; i < 8; i++)
        table[i] = x[i];
    __syncthreads();
    x[threadIdx.x] = table[(threadIdx.x + n) & 7];
}
