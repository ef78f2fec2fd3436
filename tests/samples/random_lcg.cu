#include <cinttypes>
#include <ctime>

typedef struct {
  unsigned long long state;
} rng_t;

__host__ __device__ inline unsigned int rng_next(rng_t *rng) {
  rng->state = rng->state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned int)(rng->state >> 33);
}

union Bits {
  unsigned int word;
  unsigned char bytes[4];
};

// Counts points inside a quarter of a circle, in whole numbers.
__global__ void monte_carlo(unsigned long long seed, int trials, int *inside) {
  rng_t rng = {seed + threadIdx.x};
  int count = 0;
  for (int t = 0; t < trials; ++t) {
    unsigned int x = rng_next(&rng) & 0xff, y = rng_next(&rng) & 0xff;
    count += x * x + y * y < 0x10000;
  }
  inside[threadIdx.x] = count;
}

__global__ void bytes(const unsigned int *in, int *out) {
  Bits bits;
  bits.word = in[threadIdx.x];
  out[threadIdx.x] = bits.bytes[0] + bits.bytes[3];
}

int main() {
  rng_t rng = {(unsigned long long)time(0)};
  monte_carlo<<<1, 8>>>(rng_next(&rng), 4, 0);
}
