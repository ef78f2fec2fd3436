#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

enum class Cell : uint8_t { Dead = 0, Alive = 1 };

namespace life {

struct World {
  int width, height;
  __host__ __device__ int index(int x, int y) const {
    x = (x + width) % width;
    y = (y + height) % height;
    return y * width + x;
  }
  std::string toString(const uint8_t *cells) const;
};

__device__ __forceinline__ int neighbours(const World &world, const uint8_t *cells, int x, int y) {
  int count = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dx || dy) count += cells[world.index(x + dx, y + dy)];
  return count;
}

__global__ void step(World world, const uint8_t *before, uint8_t *after) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= world.width || y >= world.height) return;
  const int n = neighbours(world, before, x, y);
  const bool alive = before[world.index(x, y)] == static_cast<uint8_t>(Cell::Alive);
  after[world.index(x, y)] = (n == 3 || (alive && n == 2)) ? 1 : 0;
}

std::string World::toString(const uint8_t *cells) const {
  std::string text;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) text += cells[index(x, y)] ? '#' : '.';
    text += '\n';
  }
  return text;
}

} // namespace life

int main() {
  life::World world{8, 8};
  auto cells = std::make_unique<uint8_t[]>(64);
  dim3 block(8, 4), grid(1, 2);
  life::step<<<grid, block>>>(world, nullptr, nullptr);
  puts(world.toString(cells.get()).c_str());
}
