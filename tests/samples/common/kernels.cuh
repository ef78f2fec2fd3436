#pragma once
#include "detail/index.cuh"

namespace gpu {
const int kStep = 5;
__constant__ int kTable[4] = {1, 10, 100, 1000};

__global__ void increment(int *data, int step);

__global__ void increment(int *data, int step) {
  const int i = detail::globalIndex();
  data[i] += step + kTable[i % 4];
}
}
