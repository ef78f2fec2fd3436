enum Mode { first, second };
template <typename T, Mode M, bool B = true> __global__ void k(T *a) { a[0] = M; }
template <typename T> void launch(T *a) {
  k<T, second> <<<1, 4>>>(a);
}
