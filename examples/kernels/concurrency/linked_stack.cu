// Linked lists built with atomic exchanges of heads, one per remainder; then one thread walks each list.
extern "C" __global__ void linked_stack(const int *values, int n, int buckets, int *length, int *sum)
{
    __shared__ int head[8], next[64];
    if (threadIdx.x < buckets)
        head[threadIdx.x] = -1;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        next[i] = atomicExch(&head[(unsigned)values[i] % buckets], i);
    __syncthreads();
    if (threadIdx.x < buckets) {
        int count = 0, total = 0;
        for (int node = head[threadIdx.x]; node >= 0; node = next[node]) {
            count++;
            total += values[node];
        }
        length[threadIdx.x] = count;
        sum[threadIdx.x] = total;
    }
}
