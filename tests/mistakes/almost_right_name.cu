__global__ void k(int *values) { value[threadIdx.x] = 1; }
