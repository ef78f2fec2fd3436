// Cooperative groups within a thread block: the block, tiles of a warp, and coalesced threads.
#pragma once
#include <cuda_runtime.h>

namespace cooperative_groups {

namespace qgpu {
static __device__ inline unsigned block_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
static __device__ inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
static __device__ inline unsigned lane() { return block_rank() % 32; }
}

class thread_block {
public:
  static __device__ void sync() { __syncthreads(); }
  static __device__ unsigned thread_rank() { return qgpu::block_rank(); }
  static __device__ unsigned size() { return qgpu::block_size(); }
  static __device__ unsigned num_threads() { return qgpu::block_size(); }
  static __device__ dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static __device__ dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static __device__ dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static __device__ dim3 dim_threads() { return group_dim(); }
};

static __device__ inline thread_block this_thread_block() { return thread_block(); }

// The grid, without a barrier: its thread blocks need not run at the same time.
class grid_group {
public:
  static __device__ unsigned long long block_rank() {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  static __device__ unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static __device__ unsigned long long thread_rank() { return block_rank() * qgpu::block_size() + qgpu::block_rank(); }
  static __device__ unsigned long long size() { return num_blocks() * qgpu::block_size(); }
  static __device__ unsigned long long num_threads() { return size(); }
  static __device__ dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  static __device__ dim3 dim_blocks() { return group_dim(); }
  static __device__ dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  void sync() const = delete;
};

static __device__ inline grid_group this_grid() { return grid_group(); }

// What tiles and coalesced groups share: the lanes of a warp that a mask names, told by their rank among them.
template <unsigned Size, typename Parent = void> class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  static __device__ unsigned first() { return qgpu::lane() & ~(Size - 1); }
  static __device__ unsigned mask() { return (Size == 32 ? 0xffffffffu : (1u << (Size % 32)) - 1u) << first(); }

public:
  thread_block_tile() = default;
  template <typename Other> __device__ thread_block_tile(const thread_block_tile<Size, Other> &) {}
  static __device__ void sync() { __syncwarp(mask()); }
  static __device__ unsigned thread_rank() { return qgpu::block_rank() % Size; }
  static constexpr __device__ unsigned size() { return Size; }
  static constexpr __device__ unsigned num_threads() { return Size; }
  static __device__ unsigned meta_group_rank() { return qgpu::block_rank() / Size; }
  static __device__ unsigned meta_group_size() { return (qgpu::block_size() + Size - 1) / Size; }
  template <typename T> __device__ T shfl(T value, int rank) const { return __shfl_sync(mask(), value, rank, Size); }
  template <typename T> __device__ T shfl_up(T value, unsigned by) const {
    return __shfl_up_sync(mask(), value, by, Size);
  }
  template <typename T> __device__ T shfl_down(T value, unsigned by) const {
    return __shfl_down_sync(mask(), value, by, Size);
  }
  template <typename T> __device__ T shfl_xor(T value, unsigned bits) const {
    return __shfl_xor_sync(mask(), value, bits, Size);
  }
  __device__ int any(int condition) const { return __any_sync(mask(), condition); }
  __device__ int all(int condition) const { return __all_sync(mask(), condition); }
  __device__ unsigned ballot(int condition) const { return (__ballot_sync(mask(), condition) & mask()) >> first(); }
  template <typename T> __device__ unsigned match_any(T value) const {
    return (__match_any_sync(mask(), value) & mask()) >> first();
  }
  template <typename T> __device__ unsigned match_all(T value, int &equal) const {
    return (__match_all_sync(mask(), value, &equal) & mask()) >> first();
  }
};

template <unsigned Size> static __device__ inline thread_block_tile<Size, thread_block> tiled_partition(const thread_block &) {
  return thread_block_tile<Size, thread_block>();
}
template <unsigned Size, unsigned Outer, typename Parent>
static __device__ inline thread_block_tile<Size, thread_block_tile<Outer, Parent>>
tiled_partition(const thread_block_tile<Outer, Parent> &) {
  static_assert(Size <= Outer, "a tile is no larger than the group that it is a part of");
  return thread_block_tile<Size, thread_block_tile<Outer, Parent>>();
}

class coalesced_group {
  unsigned mask_;
  __device__ unsigned below() const { return mask_ & ((1u << qgpu::lane()) - 1u); }
  __device__ unsigned lane_of(unsigned rank) const {
    unsigned rest = mask_;
    for (unsigned i = 0; i < rank; i++) rest &= rest - 1;
    return __ffs(rest) - 1;
  }
  __device__ unsigned packed(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned rest = mask_; rest; rest &= rest - 1, rank++)
      result |= ((lanes >> (__ffs(rest) - 1)) & 1u) << rank;
    return result;
  }

public:
  explicit __device__ coalesced_group(unsigned mask) : mask_(mask) {}
  __device__ void sync() const { __syncwarp(mask_); }
  __device__ unsigned thread_rank() const { return __popc(below()); }
  __device__ unsigned size() const { return __popc(mask_); }
  __device__ unsigned num_threads() const { return size(); }
  template <typename T> __device__ T shfl(T value, int rank) const { return __shfl_sync(mask_, value, lane_of(rank)); }
  template <typename T> __device__ T shfl_up(T value, unsigned by) const {
    const unsigned rank = thread_rank();
    return __shfl_sync(mask_, value, lane_of(rank < by ? rank : rank - by));
  }
  template <typename T> __device__ T shfl_down(T value, unsigned by) const {
    const unsigned rank = thread_rank();
    return __shfl_sync(mask_, value, lane_of(rank + by < size() ? rank + by : rank));
  }
  __device__ int any(int condition) const { return __any_sync(mask_, condition); }
  __device__ int all(int condition) const { return __all_sync(mask_, condition); }
  __device__ unsigned ballot(int condition) const { return packed(__ballot_sync(mask_, condition)); }
};

static __device__ inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <typename Group> static __device__ inline void sync(const Group &group) { group.sync(); }
template <typename Group> static __device__ inline unsigned thread_rank(const Group &group) { return group.thread_rank(); }
template <typename Group> static __device__ inline unsigned group_size(const Group &group) { return group.size(); }

}
