__global__ void add(int *a) { a[0] = 1; }
__global__ void sub(int *a) { a[0] = 2; }
