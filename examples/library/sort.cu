// Sorts the n elements of data, smallest first: a bitonic network whose comparators all point one way, so
// that any n will do. What lies beyond n would be infinitely large, and such a comparator changes nothing.
// Launch: one thread block of any size; a thread takes every blockDim.x-th pair.
__device__ void order(int *data, int i, int j, int n)
{
    if (j > i && j < n && data[i] > data[j]) {
        int larger = data[i];
        data[i] = data[j];
        data[j] = larger;
    }
}

extern "C" __global__ void sort(int *data, int n)
{
#pragma unroll 1
    for (int size = 2; size < 2 * n; size *= 2) {
#pragma unroll 1
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            order(data, i, i ^ (size - 1), n);
        __syncthreads();
#pragma unroll 1
        for (int distance = size / 4; distance > 0; distance /= 2) {
#pragma unroll 1
            for (int i = threadIdx.x; i < n; i += blockDim.x)
                order(data, i, i ^ distance, n);
            __syncthreads();
        }
    }
}
