// Kernels of one name: in namespaces, overloaded, and as a template.
#include <cuda_runtime.h>

namespace left {
__global__ void shift(int *data, int by) { data[threadIdx.x] <<= by; }
}
namespace right {
__global__ void shift(int *data, int by) { data[threadIdx.x] >>= by; }
namespace {
__global__ void hidden(int *data) { data[threadIdx.x] = ~data[threadIdx.x]; }
}
}

__global__ void scale(int *data, int factor) { data[threadIdx.x] *= factor; }
__global__ void scale(long long *data, long long factor) { data[threadIdx.x] *= factor; }

template <typename T> __global__ void fill(T *data, T value) { data[threadIdx.x] = value; }
template __global__ void fill<short>(short *, short);

int main() {
  left::shift<<<1, 4>>>(nullptr, 1);
  right::shift<<<1, 4>>>(nullptr, 1);
  right::hidden<<<1, 4>>>(nullptr);
  fill<unsigned long long><<<1, 4>>>(nullptr, 7ULL);
}
