// A kernel that reads blockIdx.x alone sees it begin anew in every row of the grid.
// launch: 3,2,2 2 i32[6]
// expect: [4] * 6
extern "C" __global__ void columns(int *out)
{
    atomicAdd(&out[blockIdx.x * blockDim.x + threadIdx.x], 1);
}
