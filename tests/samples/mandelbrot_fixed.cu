#include <fstream>
#include <cstdint>

// The set of Mandelbrot in fixed point with 12 fractional bits.
constexpr int FRACTION = 12;
constexpr int toFixed(int whole, int hundredths) { return (whole << FRACTION) + ((hundredths << FRACTION) / 100); }

template <int MaxIterations> __global__ void mandelbrot(uint8_t *image, int width, int height) {
  const int px = blockIdx.x * blockDim.x + threadIdx.x;
  const int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  const int cx = toFixed(-2, 0) + px * toFixed(3, 0) / width;
  const int cy = toFixed(-1, 0) + py * toFixed(2, 0) / height;
  int x = 0, y = 0, n = 0;
  while (n < MaxIterations) {
    const int xx = (x * x) >> FRACTION, yy = (y * y) >> FRACTION;
    if (xx + yy > toFixed(4, 0)) break;
    y = ((2 * x * y) >> FRACTION) + cy;
    x = xx - yy + cx;
    ++n;
  }
  image[py * width + px] = n;
}

static void writePgm(const char *path, const uint8_t *image, int width, int height) {
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << width << ' ' << height << "\n16\n";
  file.write(reinterpret_cast<const char *>(image), width * height);
}

int main() {
  uint8_t *image;
  cudaMallocManaged(&image, 8 * 8);
  mandelbrot<16><<<dim3(2, 2), dim3(4, 4)>>>(image, 8, 8);
  cudaDeviceSynchronize();
  writePgm("mandelbrot.pgm", image, 8, 8);
}
