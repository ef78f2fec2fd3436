#include <ostream>
#include <limits>

template <typename T> class Interval {
public:
  __device__ __host__ Interval(T low, T high) : low_(low), high_{high} {}
  __device__ __host__ T width() const { return high_ - low_; }
  __device__ __host__ bool contains(T x) const { return low_ <= x && x < high_; }
  __device__ __host__ Interval operator&(const Interval &o) const {
    return Interval(low_ > o.low_ ? low_ : o.low_, high_ < o.high_ ? high_ : o.high_);
  }
  friend std::ostream &operator<<(std::ostream &out, const Interval &i) { return out << i.low_ << ".." << i.high_; }
  void print(std::ostream &out) const { out << *this; }
  static Interval all();

private:
  T low_, high_;
};

template <typename T> Interval<T> Interval<T>::all() {
  return Interval(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

__global__ void overlaps(const int *lows, const int *highs, int *out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  Interval<int> mine(lows[i], highs[i]);
  int total = 0;
  for (int j = 0; j < n; ++j) {
    const Interval<int> both = mine & Interval<int>(lows[j], highs[j]);
    total += both.width() > 0 ? both.width() : 0;
  }
  out[i] = mine.contains(5) ? total : std::numeric_limits<int>::max();
}

int main() {
  overlaps<<<1, 32>>>(nullptr, nullptr, nullptr, 0);
  return Interval<int>::all().width();
}
