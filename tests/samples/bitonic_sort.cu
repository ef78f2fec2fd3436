#include <stdlib.h>
#include <stdio.h>
#include <time.h>

/* Every time the kernel is launched one pass of the bitonic network is done. */
__global__ void bitonic_sort_step(int *dev_values, int j, int k) {
  unsigned int i, ixj;
  i = threadIdx.x + blockDim.x * blockIdx.x;
  ixj = i ^ j;
  if ((ixj) > i) {
    if ((i & k) == 0) {
      if (dev_values[i] > dev_values[ixj]) {
        int temp = dev_values[i];
        dev_values[i] = dev_values[ixj];
        dev_values[ixj] = temp;
      }
    }
    if ((i & k) != 0) {
      if (dev_values[i] < dev_values[ixj]) {
        int temp = dev_values[i];
        dev_values[i] = dev_values[ixj];
        dev_values[ixj] = temp;
      }
    }
  }
}

void bitonic_sort(int *values, int n, int threads) {
  int *dev_values;
  size_t size = n * sizeof(int);
  cudaMalloc((void **)&dev_values, size);
  cudaMemcpy(dev_values, values, size, cudaMemcpyHostToDevice);
  for (int k = 2; k <= n; k <<= 1)
    for (int j = k >> 1; j > 0; j = j >> 1) bitonic_sort_step<<<n / threads, threads>>>(dev_values, j, k);
  cudaMemcpy(values, dev_values, size, cudaMemcpyDeviceToHost);
  cudaFree(dev_values);
}

int main(void) {
  clock_t start, stop;
  int *values = (int *)malloc(64 * sizeof(int));
  srand(time(NULL));
  for (int i = 0; i < 64; ++i) values[i] = rand();
  start = clock();
  bitonic_sort(values, 64, 32);
  stop = clock();
  printf("Elapsed time: %.3fs\n", ((double)(stop - start)) / CLOCKS_PER_SEC);
}
