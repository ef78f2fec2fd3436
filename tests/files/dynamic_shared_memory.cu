// Dynamic shared memory begins after the static arrays.
// launch: 1 4 shared=16 i32[4]
// expect: [3 + 1, 2 + 1, 1 + 1, 0 + 1]
extern "C" __global__ void dynamic(int *out)
{
    extern __shared__ int words[];
    __shared__ int one;
    one = 1;
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[blockDim.x - 1 - threadIdx.x] + one;
}
