/* Vector addition, as in the first chapter of every book. */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

__global__ void vectorAdd(const int *A, const int *B, int *C, int numElements) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < numElements) {
    C[i] = A[i] + B[i];
  }
}

int main(void) {
  cudaError_t err = cudaSuccess;
  int numElements = 100;
  size_t size = numElements * sizeof(int);
  printf("[Vector addition of %d elements]\n", numElements);
  int *h_A = (int *)malloc(size), *h_B = (int *)malloc(size), *h_C = (int *)malloc(size);
  if (h_A == NULL || h_B == NULL || h_C == NULL) {
    fprintf(stderr, "Failed to allocate host vectors!\n");
    exit(EXIT_FAILURE);
  }
  for (int i = 0; i < numElements; ++i) {
    h_A[i] = rand();
    h_B[i] = rand();
  }
  int *d_A = NULL, *d_B = NULL, *d_C = NULL;
  err = cudaMalloc((void **)&d_A, size);
  err = cudaMalloc((void **)&d_B, size);
  err = cudaMalloc((void **)&d_C, size);
  cudaMemcpy(d_A, h_A, size, cudaMemcpyHostToDevice);
  cudaMemcpy(d_B, h_B, size, cudaMemcpyHostToDevice);
  int threadsPerBlock = 32;
  int blocksPerGrid = (numElements + threadsPerBlock - 1) / threadsPerBlock;
  vectorAdd<<<blocksPerGrid, threadsPerBlock>>>(d_A, d_B, d_C, numElements);
  err = cudaGetLastError();
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to launch vectorAdd kernel (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  cudaMemcpy(h_C, d_C, size, cudaMemcpyDeviceToHost);
  for (int i = 0; i < numElements; ++i)
    if (h_A[i] + h_B[i] != h_C[i]) exit(EXIT_FAILURE);
  cudaFree(d_A), cudaFree(d_B), cudaFree(d_C);
  free(h_A), free(h_B), free(h_C);
  printf("Done\n");
  return 0;
}
