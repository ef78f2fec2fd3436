__global__ void k(int *a) {
  __shared__ int s[8];
  s[threadIdx.x] = 1;
  a[threadIdx.x] = s[threadIdx.x + 1];
}
