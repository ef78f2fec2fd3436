__global__ int k(int *a) { return a[0]; }
