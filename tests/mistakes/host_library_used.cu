#include <vector>
__global__ void k(int *a) {
  std::vector<int> v;
  a[0] = v.size();
}
