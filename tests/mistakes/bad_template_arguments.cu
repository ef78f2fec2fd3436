template <int N> __global__ void k(int *a) { a[0] = N; }
