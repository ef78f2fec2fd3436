// Thread blocks are counted in x, then y, then z, whichever of the counters a kernel reads.
// launch: 2,3,2 2,1,2 i32[48]
// expect: [100 * (z * 2 + tz) + 10 * y + (x * 2 + tx) for z in (0, 1) for tz in (0, 1) for y in range(3) for x in (0, 1) for tx in (0, 1)]
// launch: 1,1,3 1,1,1 i32[6]
// expect: [0, 100, 200, 0, 0, 0]
extern "C" __global__ void grid3(int *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int width = gridDim.x * blockDim.x;
    int row = z * gridDim.y + blockIdx.y;
    out[row * width + x] = 100 * z + 10 * blockIdx.y + x;
}
