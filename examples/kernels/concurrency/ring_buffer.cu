// A ring buffer in shared memory: one half of the block produces, the other consumes, a barrier a round.
#define SLOTS 16

extern "C" __global__ void ring_buffer(const int *items, int n, unsigned long long *total, int *consumed)
{
    __shared__ int ring[SLOTS];
    __shared__ unsigned head, tail;
    int half = blockDim.x / 2;
    bool producer = threadIdx.x < half;
    int t = producer ? threadIdx.x : threadIdx.x - half;
    long long sum = 0;
    if (threadIdx.x == 0)
        head = tail = 0;
    __syncthreads();
    while (true) {
        int room = min(SLOTS - (int)(head - tail), half);
        if (producer && t < room && head + t < n)
            ring[(head + t) % SLOTS] = items[head + t];
        __syncthreads();
        if (threadIdx.x == 0)
            head = min((int)head + room, n);
        __syncthreads();
        int waiting = min((int)(head - tail), half - 1);
        if (!producer && t < waiting)
            sum += (long long)ring[(tail + t) % SLOTS] * (int)(tail + t + 1);
        __syncthreads();
        if (threadIdx.x == 0)
            tail += waiting;
        __syncthreads();
        if (tail == n)
            break;
    }
    if (!producer)
        atomicAdd(total, (unsigned long long)sum);
    if (threadIdx.x == 0)
        *consumed = tail;
}
