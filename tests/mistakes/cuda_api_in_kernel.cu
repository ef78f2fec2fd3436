__global__ void k(int *a) { cudaMalloc(&a, 4); }
