#include <assert.h>
__global__ void k(int *a) {
  assert(a[0] > 0);
}
