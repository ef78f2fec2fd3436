// A tile a block with two by two results a thread in registers; template parameters fix the sizes.
template <int N, int PER_THREAD>
__device__ void multiply(const short *a, const short *b, int *c, short (*ta)[N], short (*tb)[N])
{
    const int side = N / PER_THREAD;
    int tx = threadIdx.x % side, ty = threadIdx.x / side;
    for (int i = threadIdx.x; i < N * N; i += blockDim.x) {
        ta[i / N][i % N] = a[i];
        tb[i / N][i % N] = b[i];
    }
    __syncthreads();
    int sum[PER_THREAD][PER_THREAD] = {};
    for (int k = 0; k < N; k++)
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++)
#pragma unroll
            for (int j = 0; j < PER_THREAD; j++)
                sum[i][j] += ta[ty * PER_THREAD + i][k] * tb[k][tx * PER_THREAD + j];
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++)
#pragma unroll
        for (int j = 0; j < PER_THREAD; j++)
            c[(ty * PER_THREAD + i) * N + tx * PER_THREAD + j] = sum[i][j];
}

extern "C" __global__ void matmul_registers(const short *a, const short *b, int *c)
{
    __shared__ short ta[12][12], tb[12][12];
    multiply<12, 2>(a, b, c, ta, tb);
}
