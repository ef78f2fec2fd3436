// A word at an address that is no multiple of 4 is a fault.
// launch: 1 2 i32[4] i32[2] i32:4
// expect: [0, 0, 0, 0] ; [0, 0]
// launch: 1 2 i32[4] i32[2] i32:2
// fault: misaligned thread 1,0,0 line 8
extern "C" __global__ void misaligned(const char *in, int *out, int stride)
{
    out[threadIdx.x] = *(const int *)(in + threadIdx.x * stride);
}
