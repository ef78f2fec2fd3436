__global__ void k(int *a) { int *p = new int[4]; a[0] = p[0]; delete[] p; }
