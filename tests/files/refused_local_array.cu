// The machine has no memory of a thread's own.
// error: local
extern "C" __global__ void local(int *x, int n)
{
    int table[8];
#pragma unroll 1
    for (int i = 0; i < 8; i++)
        table[i] = x[i];
    x[threadIdx.x] = table[n];
}
