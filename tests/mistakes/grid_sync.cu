#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int *a) { cg::this_grid().sync(); a[0] = 1; }
