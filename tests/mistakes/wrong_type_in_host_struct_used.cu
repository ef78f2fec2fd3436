#include <string>
struct S {
  std::string name;
  int x;
};
__global__ void k(S s, int *a) { a[0] = s.x; }
