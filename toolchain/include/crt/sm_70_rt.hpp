// What clang's own CUDA header includes under this name: matches of values in a warp.
#pragma once
template <typename T> static __inline__ __device__ unsigned int __match_any_sync(unsigned int mask, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 32 or 64 bits are matched");
  if (sizeof(T) == 4) return __match32_any_sync(mask, (unsigned int)value);
  return __match64_any_sync(mask, (unsigned long long)value);
}
template <typename T> static __inline__ __device__ unsigned int __match_all_sync(unsigned int mask, T value, int *equal) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 32 or 64 bits are matched");
  if (sizeof(T) == 4) return __match32_all_sync(mask, (unsigned int)value, equal);
  return __match64_all_sync(mask, (unsigned long long)value, equal);
}
