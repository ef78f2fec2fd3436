__global__ void k(int *a) {
  int i = threadIdx.x
  a[i] = 1;
}
