#pragma once
namespace gpu {
namespace detail {
__device__ inline int globalIndex() { return blockIdx.x * blockDim.x + threadIdx.x; }
}
}
