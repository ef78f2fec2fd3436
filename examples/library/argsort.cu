// Sorts the n elements of keys, smallest first, and leaves in out where each was, from 0; of equal ones, the
// earlier comes first. The network is that of sort.cu.
// Launch: one thread block of any size; a thread takes every blockDim.x-th pair.
__device__ void order(int *keys, int *places, int i, int j, int n)
{
    if (j <= i || j >= n)
        return;
    int x = keys[i], y = keys[j], p = places[i], q = places[j];
    if (x > y || (x == y && p > q)) {
        keys[i] = y;
        keys[j] = x;
        places[i] = q;
        places[j] = p;
    }
}

extern "C" __global__ void argsort(int *keys, int *out, int n)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = i;
    __syncthreads();
#pragma unroll 1
    for (int size = 2; size < 2 * n; size *= 2) {
#pragma unroll 1
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            order(keys, out, i, i ^ (size - 1), n);
        __syncthreads();
#pragma unroll 1
        for (int distance = size / 4; distance > 0; distance /= 2) {
#pragma unroll 1
            for (int i = threadIdx.x; i < n; i += blockDim.x)
                order(keys, out, i, i ^ distance, n);
            __syncthreads();
        }
    }
}
