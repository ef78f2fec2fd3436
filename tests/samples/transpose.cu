#include <stdio.h>
const int TILE_DIM = 8;
const int BLOCK_ROWS = 2;

__global__ void copy(int *odata, const int *idata) {
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  int width = gridDim.x * TILE_DIM;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[(y + j) * width + x] = idata[(y + j) * width + x];
}

// The extra column keeps the accesses of a warp in different banks.
__global__ void transposeNoBankConflicts(int *odata, const int *idata) {
  __shared__ int tile[TILE_DIM][TILE_DIM + 1];
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  int width = gridDim.x * TILE_DIM;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x;
  y = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
}

void postprocess(const int *ref, const int *res, int n, float ms) {
  bool passed = true;
  for (int i = 0; i < n; i++)
    if (res[i] != ref[i]) {
      printf("%d %d %d\n", i, res[i], ref[i]);
      passed = false;
      break;
    }
  if (passed) printf("%20.2f\n", 2 * n * sizeof(int) * 1e-6 / ms);
}

int main(int argc, char **argv) {
  const int nx = 16, ny = 16;
  dim3 dimGrid(nx / TILE_DIM, ny / TILE_DIM, 1);
  dim3 dimBlock(TILE_DIM, BLOCK_ROWS, 1);
  cudaEvent_t startEvent, stopEvent;
  cudaEventCreate(&startEvent);
  cudaEventCreate(&stopEvent);
  float ms;
  int *d_idata = 0, *d_tdata = 0;
  cudaEventRecord(startEvent, 0);
  copy<<<dimGrid, dimBlock>>>(d_tdata, d_idata);
  transposeNoBankConflicts<<<dimGrid, dimBlock>>>(d_tdata, d_idata);
  cudaEventRecord(stopEvent, 0);
  cudaEventElapsedTime(&ms, startEvent, stopEvent);
  postprocess(0, 0, 0, ms);
}
