template <typename T, int N> __global__ void k(T *a) { a[0] = N; }
