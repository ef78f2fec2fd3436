#include <cooperative_groups.h>
#include <stdio.h>

using namespace cooperative_groups;

template <typename Group> __device__ int sumReduction(Group g, int *x, int val) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    x[lane] = val;
    g.sync();
    if (lane < i) val += x[lane + i];
    g.sync();
  }
  return g.thread_rank() == 0 ? val : -1;
}

__global__ void cgkernel(int *out) {
  thread_block threadBlockGroup = this_thread_block();
  extern __shared__ int workspace[];
  int input = threadBlockGroup.thread_rank();
  int output = sumReduction(threadBlockGroup, workspace, input);
  if (threadBlockGroup.thread_rank() == 0) out[0] = output;
  threadBlockGroup.sync();
  thread_block_tile<16> tiledPartition16 = tiled_partition<16>(threadBlockGroup);
  int workspaceOffset = threadBlockGroup.thread_rank() - tiledPartition16.thread_rank();
  input = tiledPartition16.thread_rank();
  output = sumReduction(tiledPartition16, workspace + workspaceOffset, input);
  if (tiledPartition16.thread_rank() == 0) out[1 + tiledPartition16.meta_group_rank()] = output;
  if (tiledPartition16.any(input == 15) && tiledPartition16.all(input < 16))
    out[5 + threadBlockGroup.thread_rank()] = __popc(tiledPartition16.ballot(input & 1)) + tiledPartition16.shfl(input, 3);
}

int main() {
  int blocksPerGrid = 1, threadsPerBlock = 64;
  cgkernel<<<blocksPerGrid, threadsPerBlock, threadsPerBlock * sizeof(int)>>>(NULL);
  cudaError_t err = cudaDeviceSynchronize();
  return err == cudaSuccess ? 0 : 1;
}
