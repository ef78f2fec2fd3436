// Fixed-point numbers with 8 fractional bits, for host and device.
#pragma once
#ifdef __CUDACC__
#define HD __host__ __device__
#else
#define HD
#endif

struct Fixed {
  int raw;
  HD Fixed() : raw(0) {}
  HD explicit Fixed(int value) : raw(value << 8) {}
  HD static Fixed fromRaw(int raw) {
    Fixed f;
    f.raw = raw;
    return f;
  }
  HD Fixed operator+(const Fixed &other) const { return fromRaw(raw + other.raw); }
  HD Fixed operator*(const Fixed &other) const { return fromRaw((int)(((long long)raw * other.raw) >> 8)); }
};
