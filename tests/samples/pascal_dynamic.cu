/**
 * Rows of Pascal's triangle modulo a prime, by dynamic programming in shared memory.
 */
#include <cstdlib>
#ifndef MODULUS
#define MODULUS 97
#endif
#if 0
this is not C++ at all { { {
#endif

typedef unsigned int u32;
using Word = u32;

extern __shared__ Word row[];

static __device__ __noinline__ Word addModulo(Word a, Word b) {
  Word sum = a + b;
  return sum >= MODULUS ? sum - MODULUS : sum;
}

__global__ void __launch_bounds__(32) pascal(Word *out, int rows) {
  const int i = threadIdx.x;
  row[i] = i == 0;
  for (int r = 1; r < rows; ++r) {
    __syncthreads();
    const Word left = i ? row[i - 1] : 0;
    const Word own = row[i];
    __syncthreads();
    row[i] = addModulo(left, own);
  }
  out[i] = row[i];
}

#ifdef WITH_MAIN
int main() {
#else
int run() {
#endif
  pascal<<<1, 16, 16 * sizeof(Word)>>>(nullptr, 12);
  return EXIT_SUCCESS;
}
