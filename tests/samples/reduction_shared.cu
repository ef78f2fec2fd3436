#include <cstdio>
#include <numeric>
#include <vector>

#define BLOCK_SIZE 32

// Sums BLOCK_SIZE elements of each block in shared memory (sequential addressing).
__global__ void reduce(int *g_idata, int *g_odata, unsigned int n) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = (i < n) ? g_idata[i] : 0;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) {
      sdata[tid] += sdata[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

int main(int argc, char **argv) {
  std::vector<int> data(argc > 1 ? atoi(argv[1]) : 1024);
  std::iota(data.begin(), data.end(), 1);
  int *in, *out;
  cudaMalloc(&in, data.size() * sizeof(int));
  cudaMalloc(&out, data.size() / BLOCK_SIZE * sizeof(int));
  cudaMemcpy(in, data.data(), data.size() * sizeof(int), cudaMemcpyHostToDevice);
  reduce<<<data.size() / BLOCK_SIZE, BLOCK_SIZE, BLOCK_SIZE * sizeof(int)>>>(in, out, data.size());
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
