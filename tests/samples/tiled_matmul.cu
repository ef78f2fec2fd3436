#include <cstdio>
#include <random>
#include "common/check.h"
#include "common/timer.h"

constexpr int TILE = 4;

struct Matrix {
  int width;
  int height;
  int *elements;
};

__device__ int getElement(const Matrix m, int row, int col) {
  return row < m.height && col < m.width ? m.elements[row * m.width + col] : 0;
}

__global__ void matMul(const int *A, const int *B, int *C, int n) {
  __shared__ int As[TILE][TILE];
  __shared__ int Bs[TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  int sum = 0;
  for (int t = 0; t < n / TILE; ++t) {
    As[ty][tx] = A[row * n + t * TILE + tx];
    Bs[ty][tx] = B[(t * TILE + ty) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }
  C[row * n + col] = sum;
}

static void fill(std::vector<int> &v) {
  std::mt19937 gen(42);
  for (auto &e : v) e = gen() % 10;
}

int main() {
  Timer timer;
  std::vector<int> a(64), b(64), c(64);
  fill(a), fill(b);
  int *da, *db, *dc;
  CHECK(cudaMalloc(&da, 256));
  CHECK(cudaMalloc(&db, 256));
  CHECK(cudaMalloc(&dc, 256));
  dim3 threads(TILE, TILE), grid(8 / TILE, 8 / TILE);
  matMul<<<grid, threads>>>(da, db, dc, 8);
  CHECK(cudaDeviceSynchronize());
  printf("%f ms\n", timer.milliseconds());
}
