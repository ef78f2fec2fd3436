#include <stdio.h>
__global__ void k(int *a) {
  printf("%d %d\n", a[0]);
}
