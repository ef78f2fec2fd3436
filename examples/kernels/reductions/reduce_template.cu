// The fully unrolled tree as a template over the block size and the operation.
struct Sum {
    __device__ static int identity() { return 0; }
    __device__ int operator()(int a, int b) const { return a + b; }
};
struct Maximum {
    __device__ static int identity() { return -2147483647 - 1; }
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

template <unsigned int BLOCK, typename Op>
__device__ int block_reduce(int value, int *shared, Op op)
{
    unsigned int t = threadIdx.x;
    shared[t] = value;
    __syncthreads();
    if (BLOCK >= 64) {
        if (t < 32)
            shared[t] = op(shared[t], shared[t + 32]);
        __syncthreads();
    }
#pragma unroll
    for (unsigned int s = 16; s > 0; s >>= 1) {
        if (t < s)
            shared[t] = op(shared[t], shared[t + s]);
        __syncthreads();
    }
    int result = shared[0];
    __syncthreads();
    return result;
}

extern "C" __global__ void reduce_template(const int *in, int *out, int n)
{
    __shared__ int shared[64];
    int i = threadIdx.x;
    int sum = block_reduce<64>(i < n ? in[i] : Sum::identity(), shared, Sum());
    int top = block_reduce<64>(i < n ? in[i] : Maximum::identity(), shared, Maximum());
    if (i == 0) {
        out[0] = sum;
        out[1] = top;
    }
}
