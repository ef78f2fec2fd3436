#include <climits>
#include <cassert>
#include <cuda.h>

namespace utils {
template <typename T> __device__ __forceinline__ T inclusiveScan(T value) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int delta = 1; delta < 32; delta <<= 1) {
    T other = __shfl_up_sync(0xffffffffu, value, delta);
    if (lane >= delta) value += other;
  }
  return value;
}
template <int N> struct Log2 { static const int value = 1 + Log2<N / 2>::value; };
template <> struct Log2<1> { static const int value = 0; };
}

namespace kernels {
template <typename T, int N> __global__ void scan(const T *in, T *out) {
  assert(blockDim.x == N);
  static_assert(utils::Log2<N>::value == 5, "a warp");
  out[threadIdx.x] = utils::inclusiveScan(in[threadIdx.x]);
}
}

template <typename T> void check(const T *in, T *out, cudaStream_t stream = 0) {
  kernels::scan<T, 32><<<1, 32, 0, stream>>>(in, out);
}

int main() {
  check<int>(nullptr, nullptr);
  kernels::scan<int, 32><<<1, 32>>>(nullptr, nullptr);
  kernels::scan<unsigned short, 32><<<1, 32>>>(nullptr, nullptr);
}
