// Shared arrays, static ones one after another, with a barrier between writing and reading.
// launch: 2 5 i32[]:1,2,3,4,5,6,7,8,9,10 i32[10]
// expect: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] ; [5 + 1, 4 + 2, 3 + 3, 2 + 4, 1 + 5, 10 + 6, 9 + 7, 8 + 8, 7 + 9, 6 + 10]
extern "C" __global__ void reverse(const int *in, int *out)
{
    __shared__ int words[8];
    __shared__ unsigned char bytes[8];
    int i = threadIdx.x, n = blockDim.x;
    int at = blockIdx.x * n + i;
    words[i] = in[at];
    bytes[i] = in[at];
    __syncthreads();
    out[at] = words[n - 1 - i] + bytes[i];
}
