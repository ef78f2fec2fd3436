// Indices behind a mask: the compiler masks the 64-bit byte offset, of which 32 bits decide.
// launch: 1 8 i32[8] i32[]:10,20,30,40,50,60,70,80
// expect: [10 + 10, 20 + 40, 30 + 70, 40 + 20, 10 + 50, 20 + 80, 30 + 30, 40 + 60] ; [10, 20, 30, 40, 50, 60, 70, 80]
extern "C" __global__ void pick(int *out, const int *in)
{
    __shared__ int s[4];
    int i = threadIdx.x;
    if (i < 4) s[i] = in[i];
    __syncthreads();
    out[i] = s[i & 3] + in[(3 * i) & 7];
}
