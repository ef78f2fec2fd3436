// `steps` times: every cell becomes the sum of its two neighbours, cell 0 and cell n-1 being neighbours too.
// The cells lie in `from`; each step writes the other buffer, and the two pointers are swapped. So the last
// state is in `from` after an even number of steps and in `to` after an odd one.
// Launch: one thread block of n threads, which meet at a barrier after each step.
extern "C" __global__ void ping_pong(int *from, int *to, int n, int steps)
{
    int i = threadIdx.x;
    int left = i == 0 ? n - 1 : i - 1;
    int right = i == n - 1 ? 0 : i + 1;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        to[i] = from[left] + from[right];
        int *written = to;
        to = from;
        from = written;
        __syncthreads();
    }
}
