// Shell sort with Knuth's gaps, one row a thread block; the threads take the chains of a gap.
extern "C" __global__ void shell_sort(int *data, int width)
{
    int *a = data + blockIdx.x * width;
    int gap = 1;
    while (gap < width / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (int chain = threadIdx.x; chain < gap; chain += blockDim.x)
            for (int i = chain + gap; i < width; i += gap) {
                int key = a[i], j = i;
                for (; j >= gap && a[j - gap] > key; j -= gap)
                    a[j] = a[j - gap];
                a[j] = key;
            }
        __syncthreads();
    }
}
