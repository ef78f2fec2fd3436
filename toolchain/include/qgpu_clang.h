// What clang lacks of CUDA's language without an SDK: keywords, vector types and device functions.
// Built-in variables and warp functions are from the headers that clang brings itself.
#pragma once
#ifndef CUDA_VERSION
#define CUDA_VERSION 11050
#endif

#ifndef __CUDACC__
#define __CUDACC__
#endif
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __grid_constant__
#define CUDARTAPI

#define QGPU_DEVICE static __inline__ __device__ __attribute__((always_inline))
#define QGPU_BOTH static __inline__ __host__ __device__ __attribute__((always_inline))

// The types t1 to t4 of a scalar type; two and four elements lie on a multiple of their size, up to 16 bytes.
#define QGPU_VECTORS(t, type, align2, align4)                                                                  \
  struct t##1 { type x; };                                                                                     \
  struct __align__(align2) t##2 { type x, y; };                                                                \
  struct t##3 { type x, y, z; };                                                                               \
  struct __align__(align4) t##4 { type x, y, z, w; };                                                          \
  QGPU_BOTH t##1 make_##t##1(type x) { return {x}; }                                                           \
  QGPU_BOTH t##2 make_##t##2(type x, type y) { return {x, y}; }                                                \
  QGPU_BOTH t##3 make_##t##3(type x, type y, type z) { return {x, y, z}; }                                     \
  QGPU_BOTH t##4 make_##t##4(type x, type y, type z, type w) { return {x, y, z, w}; }
QGPU_VECTORS(char, signed char, 2, 4)
QGPU_VECTORS(uchar, unsigned char, 2, 4)
QGPU_VECTORS(short, short, 4, 8)
QGPU_VECTORS(ushort, unsigned short, 4, 8)
QGPU_VECTORS(int, int, 8, 16)
QGPU_VECTORS(uint, unsigned int, 8, 16)
QGPU_VECTORS(long, long, 16, 16)
QGPU_VECTORS(ulong, unsigned long, 16, 16)
QGPU_VECTORS(longlong, long long, 16, 16)
QGPU_VECTORS(ulonglong, unsigned long long, 16, 16)
QGPU_VECTORS(float, float, 8, 16)
QGPU_VECTORS(double, double, 16, 16)
#undef QGPU_VECTORS

struct dim3 {
  unsigned int x, y, z;
  __host__ __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ constexpr operator uint3() const { return {x, y, z}; }
};

#include <__clang_cuda_builtin_vars.h>

#define QGPU_CONVERSIONS(variable)                                                                             \
  __device__ inline __cuda_builtin_##variable##_t::operator uint3() const { return {x, y, z}; }                \
  __device__ inline __cuda_builtin_##variable##_t::operator dim3() const { return {x, y, z}; }
QGPU_CONVERSIONS(threadIdx)
QGPU_CONVERSIONS(blockIdx)
#undef QGPU_CONVERSIONS
__device__ inline __cuda_builtin_blockDim_t::operator dim3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_gridDim_t::operator dim3() const { return {x, y, z}; }
#if __clang_major__ >= 16
__device__ inline __cuda_builtin_blockDim_t::operator uint3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_gridDim_t::operator uint3() const { return {x, y, z}; }
#endif

extern "C" __host__ __device__ void *memcpy(void *, const void *, __SIZE_TYPE__);
extern "C" __host__ __device__ void *memset(void *, int, __SIZE_TYPE__);
typedef unsigned int cuuint32_t;
#include <__clang_cuda_intrinsics.h>

QGPU_DEVICE void __threadfence() { __nvvm_membar_gl(); }
QGPU_DEVICE void __threadfence_block() { __nvvm_membar_cta(); }
QGPU_DEVICE void __threadfence_system() { __nvvm_membar_sys(); }
QGPU_DEVICE int __syncthreads_count(int condition) { return __nvvm_bar0_popc(condition); }
QGPU_DEVICE int __syncthreads_and(int condition) { return __nvvm_bar0_and(condition); }
QGPU_DEVICE int __syncthreads_or(int condition) { return __nvvm_bar0_or(condition); }
QGPU_DEVICE void __trap() { __asm__ volatile("trap;"); }
QGPU_DEVICE void __brkpt() { __asm__ volatile("brkpt;"); }
QGPU_DEVICE void __nanosleep(unsigned int time) { __asm__ volatile("nanosleep.u32 %0;" ::"r"(time)); }
QGPU_DEVICE long clock() { return __nvvm_read_ptx_sreg_clock(); }
QGPU_DEVICE long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }

QGPU_DEVICE int __popc(unsigned int x) { return __builtin_popcount(x); }
QGPU_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
QGPU_DEVICE int __clz(int x) { return x ? __builtin_clz(x) : 32; }
QGPU_DEVICE int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
QGPU_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
QGPU_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
QGPU_DEVICE unsigned int __brev(unsigned int x) { return __builtin_bitreverse32(x); }
QGPU_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
QGPU_DEVICE unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int s) {
  unsigned int result;
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(s));
  return result;
}
QGPU_DEVICE int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
QGPU_DEVICE unsigned int __umulhi(unsigned int x, unsigned int y) {
  return (unsigned int)(((unsigned long long)x * y) >> 32);
}
QGPU_DEVICE long long __mul64hi(long long x, long long y) {
  long long result;
  __asm__("mul.hi.s64 %0, %1, %2;" : "=l"(result) : "l"(x), "l"(y));
  return result;
}
QGPU_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  unsigned long long result;
  __asm__("mul.hi.u64 %0, %1, %2;" : "=l"(result) : "l"(x), "l"(y));
  return result;
}
QGPU_DEVICE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
QGPU_DEVICE unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffffu) * (y & 0xffffffu); }
QGPU_DEVICE unsigned int __sad(int x, int y, unsigned int z) {
  return z + (x < y ? (unsigned int)y - (unsigned int)x : (unsigned int)x - (unsigned int)y);
}
QGPU_DEVICE unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) { return z + (x < y ? y - x : x - y); }
QGPU_DEVICE int __dp4a(int a, int b, int c) {
  int result;
  __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
QGPU_DEVICE unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int c) {
  unsigned int result;
  __asm__("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

#define QGPU_MIN_MAX(type)                                                                                     \
  QGPU_BOTH constexpr type min(type a, type b) { return b < a ? b : a; }                                       \
  QGPU_BOTH constexpr type max(type a, type b) { return a < b ? b : a; }
QGPU_MIN_MAX(int)
QGPU_MIN_MAX(unsigned int)
QGPU_MIN_MAX(long)
QGPU_MIN_MAX(unsigned long)
QGPU_MIN_MAX(long long)
QGPU_MIN_MAX(unsigned long long)
QGPU_MIN_MAX(float)
QGPU_MIN_MAX(double)
#undef QGPU_MIN_MAX
#define QGPU_MIXED(a_type, b_type, type)                                                                       \
  QGPU_BOTH constexpr type min(a_type a, b_type b) { return min((type)a, (type)b); }                           \
  QGPU_BOTH constexpr type max(a_type a, b_type b) { return max((type)a, (type)b); }
QGPU_MIXED(int, unsigned int, unsigned int)
QGPU_MIXED(unsigned int, int, unsigned int)
#undef QGPU_MIXED
QGPU_DEVICE unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
QGPU_DEVICE unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
QGPU_DEVICE int abs(int x) { return x < 0 ? -x : x; }
QGPU_DEVICE long abs(long x) { return x < 0 ? -x : x; }
QGPU_DEVICE long long abs(long long x) { return x < 0 ? -x : x; }
QGPU_DEVICE long labs(long x) { return x < 0 ? -x : x; }
QGPU_DEVICE long long llabs(long long x) { return x < 0 ? -x : x; }

QGPU_DEVICE int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
QGPU_DEVICE unsigned int atomicAdd(unsigned int *p, unsigned int v) { return __nvvm_atom_add_gen_i((int *)p, v); }
QGPU_DEVICE unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) {
  return __nvvm_atom_add_gen_ll((long long *)p, v);
}
QGPU_DEVICE int atomicSub(int *p, int v) { return __nvvm_atom_add_gen_i(p, -v); }
QGPU_DEVICE unsigned int atomicSub(unsigned int *p, unsigned int v) { return __nvvm_atom_add_gen_i((int *)p, -v); }
QGPU_DEVICE int atomicExch(int *p, int v) { return __nvvm_atom_xchg_gen_i(p, v); }
QGPU_DEVICE unsigned int atomicExch(unsigned int *p, unsigned int v) { return __nvvm_atom_xchg_gen_i((int *)p, v); }
QGPU_DEVICE unsigned long long atomicExch(unsigned long long *p, unsigned long long v) {
  return __nvvm_atom_xchg_gen_ll((long long *)p, v);
}
QGPU_DEVICE int atomicMin(int *p, int v) { return __nvvm_atom_min_gen_i(p, v); }
QGPU_DEVICE unsigned int atomicMin(unsigned int *p, unsigned int v) { return __nvvm_atom_min_gen_ui(p, v); }
QGPU_DEVICE long long atomicMin(long long *p, long long v) { return __nvvm_atom_min_gen_ll(p, v); }
QGPU_DEVICE unsigned long long atomicMin(unsigned long long *p, unsigned long long v) {
  return __nvvm_atom_min_gen_ull(p, v);
}
QGPU_DEVICE int atomicMax(int *p, int v) { return __nvvm_atom_max_gen_i(p, v); }
QGPU_DEVICE unsigned int atomicMax(unsigned int *p, unsigned int v) { return __nvvm_atom_max_gen_ui(p, v); }
QGPU_DEVICE long long atomicMax(long long *p, long long v) { return __nvvm_atom_max_gen_ll(p, v); }
QGPU_DEVICE unsigned long long atomicMax(unsigned long long *p, unsigned long long v) {
  return __nvvm_atom_max_gen_ull(p, v);
}
QGPU_DEVICE unsigned int atomicInc(unsigned int *p, unsigned int v) { return __nvvm_atom_inc_gen_ui(p, v); }
QGPU_DEVICE unsigned int atomicDec(unsigned int *p, unsigned int v) { return __nvvm_atom_dec_gen_ui(p, v); }
QGPU_DEVICE int atomicCAS(int *p, int old, int v) { return __nvvm_atom_cas_gen_i(p, old, v); }
QGPU_DEVICE unsigned int atomicCAS(unsigned int *p, unsigned int old, unsigned int v) {
  return __nvvm_atom_cas_gen_i((int *)p, old, v);
}
QGPU_DEVICE unsigned long long atomicCAS(unsigned long long *p, unsigned long long old, unsigned long long v) {
  return __nvvm_atom_cas_gen_ll((long long *)p, old, v);
}
#define QGPU_ATOMIC_BITS(name, op)                                                                             \
  QGPU_DEVICE int name(int *p, int v) { return __nvvm_atom_##op##_gen_i(p, v); }                               \
  QGPU_DEVICE unsigned int name(unsigned int *p, unsigned int v) {                                             \
    return __nvvm_atom_##op##_gen_i((int *)p, v);                                                              \
  }                                                                                                            \
  QGPU_DEVICE unsigned long long name(unsigned long long *p, unsigned long long v) {                           \
    return __nvvm_atom_##op##_gen_ll((long long *)p, v);                                                       \
  }
QGPU_ATOMIC_BITS(atomicAnd, and)
QGPU_ATOMIC_BITS(atomicOr, or)
QGPU_ATOMIC_BITS(atomicXor, xor)
#undef QGPU_ATOMIC_BITS

extern "C" __device__ int printf(const char *, ...);
extern "C" __device__ void *malloc(__SIZE_TYPE__);
extern "C" __device__ void __assertfail(const char *, const char *, unsigned int, const char *, __SIZE_TYPE__);
#ifndef assert
#define assert(condition)                                                                                      \
  ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __PRETTY_FUNCTION__, sizeof(char)))
#endif
