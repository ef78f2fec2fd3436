#include <algorithm>
__global__ void k(int *a) { a[0] = std::min(a[1], a[2]); }
