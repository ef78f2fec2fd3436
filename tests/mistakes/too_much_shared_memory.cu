__global__ void k(int *a) {
  __shared__ int big[100000];
  big[threadIdx.x] = a[0];
  __syncthreads();
  a[0] = big[3 - threadIdx.x];
}
