// The reduction of a block, unrolled by the block's size as a template argument.
#include <iostream>
#include <type_traits>

template <typename T> struct Sum {
  static constexpr T identity = 0;
  __device__ T operator()(T a, T b) const { return a + b; }
};

template <typename T> struct Maximum {
  static constexpr T identity = 0;
  __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

template <unsigned int blockSize, typename T, template <typename> class Op>
__global__ void reduceUnrolled(const T *in, T *out) {
  static_assert(std::is_integral<T>::value, "integers alone");
  __shared__ T partial[blockSize];
  Op<T> op;
  unsigned int tid = threadIdx.x;
  partial[tid] = op(in[tid], in[tid + blockSize]);
  __syncthreads();
  if (blockSize >= 64) { if (tid < 32) partial[tid] = op(partial[tid], partial[tid + 32]); __syncthreads(); }
  if (blockSize >= 32) { if (tid < 16) partial[tid] = op(partial[tid], partial[tid + 16]); __syncthreads(); }
  if (blockSize >= 16) { if (tid < 8) partial[tid] = op(partial[tid], partial[tid + 8]); __syncthreads(); }
  if (blockSize >= 8) { if (tid < 4) partial[tid] = op(partial[tid], partial[tid + 4]); __syncthreads(); }
  if (blockSize >= 4) { if (tid < 2) partial[tid] = op(partial[tid], partial[tid + 2]); __syncthreads(); }
  if (tid == 0) *out = op(partial[0], partial[1]);
}

template <typename T> void run(const T *in, T *out, int threads) {
  switch (threads) {
  case 16: reduceUnrolled<16, T, Sum><<<1, threads>>>(in, out); break;
  case 32: reduceUnrolled<32, T, Sum><<<1, threads>>>(in, out); break;
  default: std::cerr << "unsupported" << std::endl;
  }
}

int main() {
  int *in = nullptr, *out = nullptr;
  run(in, out, 16);
}
