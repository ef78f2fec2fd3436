// steps[i] = how many Collatz steps lead from start[i] >= 1 to 1; a thread loops as often as its own needs.
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void collatz(const unsigned *start, int *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = start[i];
    int count = 0;
#pragma unroll 1
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x >> 1;
        count++;
    }
    steps[i] = count;
}
