#include <cstdio>
#include <mutex>
#include <thread>

__device__ unsigned int counter = 0;
__device__ int lock_word;

struct Item {
  int key;
  int value;
};

// Appends the items with an even key, in any order, and says how many there are.
__global__ void compact(const Item *items, int n, Item *out, unsigned int *count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *count = 0;
  __syncthreads();
  if (i < n && items[i].key % 2 == 0) {
    unsigned int place = atomicAdd(count, 1u);
    out[place] = items[i];
  }
}

__global__ void maxima(const int *in, int *out, int n) {
  int i = threadIdx.x;
  if (i < n) {
    atomicMax(&out[0], in[i]);
    atomicMin(&out[1], in[i]);
    atomicXor(&out[2], in[i]);
    int old = out[3], assumed;
    do {
      assumed = old;
      old = atomicCAS(&out[3], assumed, assumed + in[i] % 3);
    } while (assumed != old);
  }
}

std::mutex hostMutex;
int hostTotal = 0;

int main() {
  std::thread worker([] {
    std::lock_guard<std::mutex> guard(hostMutex);
    hostTotal += 1;
  });
  compact<<<1, 32>>>(nullptr, 0, nullptr, nullptr);
  maxima<<<1, 32>>>(nullptr, nullptr, 0);
  worker.join();
}
