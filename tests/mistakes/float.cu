__global__ void k(int *a) {
  float x = a[0] * 0.5f;
  a[0] = (int)x;
}
