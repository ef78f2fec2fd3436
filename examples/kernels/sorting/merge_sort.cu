// Bottom-up merge sort: pairs of sorted runs are merged by ranks, which binary searches find.
__device__ int count_below(const int *run, int length, int key, bool with_equal)
{
    int low = 0, high = length;
    while (low < high) {
        int middle = (low + high) / 2;
        if (run[middle] < key || (with_equal && run[middle] == key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ void merge_sort(int *data, int n)
{
    __shared__ int run[2][64];
    int t = threadIdx.x;
    int now = 0;
    run[0][t] = data[t];
    __syncthreads();
    for (int width = 1; width < n; width *= 2, now ^= 1) {
        int pair = t / (2 * width) * (2 * width);
        bool right = t - pair >= width;
        int other = right ? pair : pair + width;
        int length = max(0, min(width, n - other));
        int key = run[now][t];
        int mine = t - pair - (right ? width : 0);
        int rank = pair + mine + count_below(&run[now][other], length, key, right);
        run[now ^ 1][rank] = key;
        __syncthreads();
    }
    data[t] = run[now][t];
}
