#include <iostream>
#include "common/fixed.h"

__global__ void polynomial(const Fixed *x, Fixed *y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = x[i] * x[i] + Fixed(3) * x[i] + Fixed(1);
}

std::ostream &operator<<(std::ostream &out, const Fixed &f) { return out << f.raw / 256.0; }

int main() {
  Fixed a(2);
  std::cout << a * a << std::endl;
  polynomial<<<1, 8>>>(nullptr, nullptr, 8);
}
