__global__ void k(const int *a) { a[0] = 1; }
