__global__ void child(int *a) { a[0] = 1; }
__global__ void k(int *a) { child<<<1, 1>>>(a); }
