// Of a 64-bit scalar a kernel may use the low word.
// launch: 1 4 i32[4] i64:4294967303
// expect: [7, 8, 9, 10]
extern "C" __global__ void wide(int *out, long long base)
{
    out[threadIdx.x] = (int)base + threadIdx.x;
}
