// Error checking in the style of CUDA samples.
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                              \
  do {                                                                           \
    cudaError_t error = (call);                                                  \
    if (error != cudaSuccess) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                        \
    }                                                                            \
  } while (0)

inline int divUp(int a, int b) { return (a + b - 1) / b; }

#endif
