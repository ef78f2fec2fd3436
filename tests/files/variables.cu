// Variables of the module start every launch as they are written.
// launch: 2 4 i32[8] i32:2
// expect: [1 + 7, 10 + 8, 100 + 9, 1000 + 10, 1 + 11, 10 + 12, 100 + 13, 1000 + 14]
// launch: 1 2 i32[2] i32:0
// expect: [1 + 7, 10 + 8]
__constant__ int table[4] = {1, 10, 100, 1000};
__device__ int counter = 7;
extern "C" __global__ void variables(int *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = table[i & 3] + atomicAdd(&counter, 1);
}
