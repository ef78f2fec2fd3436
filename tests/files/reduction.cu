// A sum over a thread block in shared memory, in steps of halves with a barrier after each.
// launch: 1 64 i32[64] i32:1
// expect: [sum(range(1, 65))] + [0] * 63
// launch: 2 4 i32[64] i32:10
// expect: [10 + 11 + 12 + 13, 14 + 15 + 16 + 17] + [0] * 62
extern "C" __global__ void reduce(int *out, int first)
{
    __shared__ int partial[64];
    int t = threadIdx.x;
    partial[t] = first + blockIdx.x * blockDim.x + t;
    __syncthreads();
#pragma unroll 1
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (t < half)
            partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = partial[0];
}
