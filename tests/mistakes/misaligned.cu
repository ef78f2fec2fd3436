__global__ void k(char *a) { *(int *)(a + 1) = threadIdx.x; }
