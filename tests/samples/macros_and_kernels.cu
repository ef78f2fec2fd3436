#include <cstdio>
#include <cstdlib>

#define IDX (blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL extern "C" __global__
#define DEFINE_UNARY(name, expression)                      \
  GLOBAL void name(const int *in, int *out, int n) {        \
    const int i = IDX;                                      \
    if (i < n) {                                            \
      const int x = in[i];                                  \
      out[i] = (expression);                                \
    }                                                       \
  }
#define LAUNCH(kernel, n, ...) kernel<<<((n) + 31) / 32, 32>>>(__VA_ARGS__)

DEFINE_UNARY(square, x *x)
DEFINE_UNARY(negate, -x)
DEFINE_UNARY(clamp, x < 0 ? 0 : (x > 9 ? 9 : x))

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "sm_70 or later"
#endif

int main() {
  int *in, *out, n = 10;
  LAUNCH(square, n, in, out, n);
  LAUNCH(negate, n, in, out, n);
  LAUNCH(clamp, n, in, out, n);
}
