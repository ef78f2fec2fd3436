// cooperative_groups::inclusive_scan and exclusive_scan, for tiles.
#pragma once
#include <cooperative_groups/reduce.h>

namespace cooperative_groups {

template <unsigned Size, typename Parent, typename T, typename Op>
static __device__ inline T inclusive_scan(const thread_block_tile<Size, Parent> &tile, T value, Op op) {
  for (unsigned by = 1; by < Size; by *= 2) {
    const T before = tile.shfl_up(value, by);
    if (tile.thread_rank() >= by) value = op(before, value);
  }
  return value;
}
template <unsigned Size, typename Parent, typename T>
static __device__ inline T inclusive_scan(const thread_block_tile<Size, Parent> &tile, T value) {
  return inclusive_scan(tile, value, plus<T>());
}
template <unsigned Size, typename Parent, typename T>
static __device__ inline T exclusive_scan(const thread_block_tile<Size, Parent> &tile, T value) {
  const T before = tile.shfl_up(inclusive_scan(tile, value), 1);
  return tile.thread_rank() ? before : T(0);
}

}
