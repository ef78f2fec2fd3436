// Matrix multiplication in tiles of shared memory, sizes that are no multiple of the tile included.
#define TILE_WIDTH 8

extern "C" __global__ void matmul_tiled(const int *A, const int *B, int *C, int numARows, int numAColumns,
                                        int numBColumns)
{
    __shared__ int ds_A[TILE_WIDTH][TILE_WIDTH];
    __shared__ int ds_B[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int column = blockIdx.x * TILE_WIDTH + tx;
    int value = 0;
    for (int m = 0; m < (numAColumns - 1) / TILE_WIDTH + 1; ++m) {
        if (row < numARows && m * TILE_WIDTH + tx < numAColumns)
            ds_A[ty][tx] = A[row * numAColumns + m * TILE_WIDTH + tx];
        else
            ds_A[ty][tx] = 0;
        if (column < numBColumns && m * TILE_WIDTH + ty < numAColumns)
            ds_B[ty][tx] = B[(m * TILE_WIDTH + ty) * numBColumns + column];
        else
            ds_B[ty][tx] = 0;
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k)
            value += ds_A[ty][k] * ds_B[k][tx];
        __syncthreads();
    }
    if (row < numARows && column < numBColumns)
        C[row * numBColumns + column] = value;
}
