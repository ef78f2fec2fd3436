extern __shared__ int s[];
__global__ void k(int *a) {
  s[threadIdx.x] = 1;
  a[threadIdx.x] = s[threadIdx.x];
}
