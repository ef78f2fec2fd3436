#pragma once
#include <chrono>

class Timer {
public:
  Timer() : start_(std::chrono::steady_clock::now()) {}
  double milliseconds() const {
    std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start_;
    return passed.count();
  }

private:
  std::chrono::steady_clock::time_point start_;
};
