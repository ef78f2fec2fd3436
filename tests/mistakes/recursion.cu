__device__ __noinline__ int f(int n) {
  return n < 2 ? n : f(n - 1) + f(n - 2);
}
__global__ void k(int *a) { a[0] = f(a[1]); }
