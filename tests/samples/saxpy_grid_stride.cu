#include <iostream>
#include <vector>
#include <algorithm>
#include "common/check.h"

using namespace std;

// y = a x + y, by a grid-stride loop.
__global__ void saxpy(int n, int a, const int *__restrict__ x, int *__restrict__ y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    y[i] = a * x[i] + y[i];
}

int main() {
  const int n = 50;
  vector<int> x(n, 1), y(n, 2);
  int *dx, *dy;
  CHECK(cudaMalloc(&dx, n * sizeof(int)));
  CHECK(cudaMalloc(&dy, n * sizeof(int)));
  CHECK(cudaMemcpy(dx, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dy, y.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  saxpy<<<2, 16>>>(n, 3, dx, dy);
  CHECK(cudaMemcpy(y.data(), dy, n * sizeof(int), cudaMemcpyDeviceToHost));
  cout << "max: " << *max_element(y.begin(), y.end()) << endl;
}
