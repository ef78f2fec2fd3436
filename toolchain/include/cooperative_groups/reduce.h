// cooperative_groups::reduce and its operations, for tiles.
#pragma once
#include <cooperative_groups.h>

namespace cooperative_groups {

template <typename T> struct plus {
  __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename T> struct less {
  __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T> struct greater {
  __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename T> struct bit_and {
  __device__ T operator()(T a, T b) const { return a & b; }
};
template <typename T> struct bit_or {
  __device__ T operator()(T a, T b) const { return a | b; }
};
template <typename T> struct bit_xor {
  __device__ T operator()(T a, T b) const { return a ^ b; }
};

// Every thread gets the result: the values are joined over distances that double.
template <unsigned Size, typename Parent, typename T, typename Op>
static __device__ inline T reduce(const thread_block_tile<Size, Parent> &tile, T value, Op op) {
  for (unsigned bits = Size / 2; bits > 0; bits /= 2) value = op(value, tile.shfl_xor(value, bits));
  return value;
}

}
