// One product modulo 2^32 per thread block: sequential addressing, two elements a thread on the first level.
extern "C" __global__ void reduce_sequential(const unsigned *in, unsigned *out, int n)
{
    extern __shared__ unsigned sdata[];
    int tid = threadIdx.x;
    int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;

    unsigned mine = i < n ? in[i] : 1u;
    if (i + blockDim.x < n)
        mine *= in[i + blockDim.x];
    sdata[tid] = mine;
    __syncthreads();

    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s)
            sdata[tid] = mine = mine * sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0)
        out[blockIdx.x] = mine;
}
