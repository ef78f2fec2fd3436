__global__ void k(int *a) { a[threadIdx] = 1; }
