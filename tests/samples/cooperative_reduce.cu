#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <iostream>
namespace cg = cooperative_groups;

// Every tile of eight threads sums its elements; its first thread writes the sum.
__global__ void tileSum(const int *in, int *out) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int value = in[block.thread_rank()];
  int sum = cg::reduce(tile, value, cg::plus<int>());
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum;
}

int main() {
  tileSum<<<1, 32>>>(nullptr, nullptr);
  std::cout << cudaGetErrorString(cudaDeviceSynchronize()) << '\n';
}
