// Odd-even transposition sort, until a pass over both parities changes nothing.
extern "C" __global__ void odd_even_sort(int *data, int *passes, int n)
{
    __shared__ int changed;
    int i = threadIdx.x;
    int count = 0;
    do {
        __syncthreads();
        if (i == 0)
            changed = 0;
        __syncthreads();
        for (int parity = 0; parity < 2; parity++) {
            int left = 2 * i + parity;
            if (left + 1 < n && data[left] > data[left + 1]) {
                int t = data[left];
                data[left] = data[left + 1];
                data[left + 1] = t;
                changed = 1;
            }
            __syncthreads();
        }
        count++;
    } while (changed);
    if (i == 0)
        *passes = count;
}
