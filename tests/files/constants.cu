// A linear congruential generator: two constants in one operation.
// launch: 1 2 u32[]:1,12345
// expect: [(1 * 1664525 + 1013904223) % 2**32, (12345 * 1664525 + 1013904223) % 2**32]
extern "C" __global__ void generator(unsigned *x)
{
    x[threadIdx.x] = x[threadIdx.x] * 1664525u + 1013904223u;
}
