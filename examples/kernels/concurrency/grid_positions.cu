// Three-dimensional grids and blocks of a shape that the launch must have: every thread's coordinates, by its
// linear number, and sums over its block and its plane.
extern "C" __global__ void grid_positions(const int *shape, int *linear, int *block_sums, int *plane_counts)
{
    __shared__ int sum;
    if (gridDim.x != shape[0] || gridDim.y != shape[1] || gridDim.z != shape[2] || blockDim.x != shape[3] ||
        blockDim.y != shape[4] || blockDim.z != shape[5])
        return;
    int in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    if (in_block == 0)
        sum = 0;
    __syncthreads();
    int number = block * threads + in_block;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    linear[number] = z * 10000 + y * 100 + x;
    atomicAdd(&sum, number);
    atomicAdd(&plane_counts[z], 1);
    __syncthreads();
    if (in_block == threads - 1)
        block_sums[block] = sum;
}
