__global__ void k(int *a) {
  if (threadIdx.x < 2) {
    a[threadIdx.x] = 1;
    __syncthreads();
  }
  a[threadIdx.x] += 1;
  __syncthreads();
}
