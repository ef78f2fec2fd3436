#include <thrust/device_vector.h>
__global__ void k(int *a) { a[0] = 1; }
