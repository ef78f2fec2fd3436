#include <stdio.h>
#include <vector_types.h>

__device__ int4 operator+(int4 a, int4 b) { return make_int4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
inline __host__ __device__ int dot(int2 a, int2 b) { return a.x * b.x + a.y * b.y; }

__global__ void add4(const int4 *a, const int4 *b, int4 *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void pack(const uchar4 *pixels, unsigned int *grey, int n) {
  int i = threadIdx.x;
  if (i < n) {
    uchar4 p = pixels[i];
    grey[i] = (p.x * 77u + p.y * 151u + p.z * 28u) >> 8;
  }
}

__global__ void dots(const int2 *a, int2 b, int *out) { out[threadIdx.x] = dot(a[threadIdx.x], b); }

int main() {
  int2 h = make_int2(1, 2);
  printf("%d\n", dot(h, h));
  add4<<<1, 4>>>(NULL, NULL, NULL, 4);
  pack<<<1, 4>>>(NULL, NULL, 4);
  dots<<<1, 4>>>(NULL, h, NULL);
}
