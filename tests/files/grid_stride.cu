// A loop that steps by the size of the grid.
// launch: 2 3 i32[]:1,2,3,4,5,6,7,8,9,10,11,12,13,14 i32:14
// expect: [2 * x for x in range(1, 15)]
extern "C" __global__ void twice(int *x, int n)
{
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] *= 2;
}
