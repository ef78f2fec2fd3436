// What every CUDA file has without an #include: see the programming guide, "C++ Language Extensions".
#pragma once
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __CUDACC_RTC__
// NVRTC knows built-in variables, vector types and device functions by itself.
#elif defined(__clang__)
#include <qgpu_clang.h>
#endif

typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

namespace std {
}
