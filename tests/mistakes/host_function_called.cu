int twice(int x) { return 2 * x; }
__global__ void k(int *a) { a[0] = twice(a[0]); }
