#include <algorithm>
#include <functional>
#include <iostream>
#include <vector>

struct Affine {
  int a, b;
  __host__ __device__ int operator()(int x) const { return a * x + b; }
};

template <typename F> __global__ void transform(const int *in, int *out, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = f(in[i]);
}

__global__ void pipeline(const int *in, int *out, int n) {
  auto twice = [](int x) { return 2 * x; };
  auto plus = [n](int x) { return x + n; };
  int i = threadIdx.x;
  if (i < n) out[i] = plus(twice(in[i]));
}

int main() {
  std::vector<int> data{3, 1, 2};
  std::sort(data.begin(), data.end(), [](int x, int y) { return x > y; });
  std::function<int(int)> check = [](int x) { return x * 2; };
  transform<Affine><<<1, 32>>>(nullptr, nullptr, 3, Affine{2, 1});
  pipeline<<<1, 32>>>(nullptr, nullptr, 3);
  std::for_each(data.begin(), data.end(), [&](int x) { std::cout << check(x) << R"(
)"; });
}
