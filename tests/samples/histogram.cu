#include <cuda_runtime.h>
#include <string.h>
#define NUM_BINS 8

static const char *kTitle = "histogram";

__global__ void histogram_kernel(const unsigned char *input, unsigned int *bins, unsigned int num_elements) {
  __shared__ unsigned int bins_s[NUM_BINS];
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  for (int binIdx = threadIdx.x; binIdx < NUM_BINS; binIdx += blockDim.x) bins_s[binIdx] = 0;
  __syncthreads();
  for (unsigned int i = tid; i < num_elements; i += blockDim.x * gridDim.x)
    atomicAdd(&bins_s[input[i] % NUM_BINS], 1);
  __syncthreads();
  for (int binIdx = threadIdx.x; binIdx < NUM_BINS; binIdx += blockDim.x)
    atomicAdd(&bins[binIdx], bins_s[binIdx]);
}

__global__ void saturate_kernel(unsigned int *bins, unsigned int limit) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < NUM_BINS && bins[i] > limit) bins[i] = limit;
}

void histogram(unsigned char *input, unsigned int *bins, unsigned int n) {
  cudaMemset(bins, 0, NUM_BINS * sizeof(unsigned int));
  histogram_kernel<<<2, 16>>>(input, bins, n);
  saturate_kernel<<<1, NUM_BINS>>>(bins, 127);
}

int main() { return strlen(kTitle) == 9 ? 0 : 1; }
