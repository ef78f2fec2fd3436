#include <stdio.h>
#define MASK_WIDTH 5
#define RADIUS (MASK_WIDTH / 2)

__constant__ int M[MASK_WIDTH] = {1, 2, 3, 2, 1};

__global__ void convolution_1D(const int *N, int *P, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width) return;
  int value = 0;
  for (int j = 0; j < MASK_WIDTH; j++) {
    int k = i - RADIUS + j;
    if (k >= 0 && k < width) value += N[k] * M[j];
  }
  P[i] = value;
}

int main() {
  int h_M[MASK_WIDTH] = {1, 2, 3, 2, 1};
  cudaMemcpyToSymbol(M, h_M, MASK_WIDTH * sizeof(int));
  convolution_1D<<<1, 32>>>(NULL, NULL, 20);
  return 0;
}
