namespace x { __global__ void k(int *a) { a[0] = 1; } }
namespace y { __global__ void k(int *a) { a[0] = 2; } }
