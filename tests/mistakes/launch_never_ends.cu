__global__ void k(int *a) {
  while (a[0] == 0) a[1] += 1;
}
