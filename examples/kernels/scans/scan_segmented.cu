// Prefix sums that begin anew where a flag is set: pairs (flag, value) under an associative operation.
struct Pair {
    int flag, value;
};

__device__ Pair combine(Pair left, Pair right)
{
    Pair result;
    result.flag = left.flag | right.flag;
    result.value = right.flag ? right.value : left.value + right.value;
    return result;
}

extern "C" __global__ void scan_segmented(const int *in, const unsigned char *heads, int *out, int n)
{
    __shared__ Pair pairs[64];
    int i = threadIdx.x;
    Pair mine = {0, 0};
    if (i < n) {
        mine.flag = heads[i];
        mine.value = in[i];
    }
    pairs[i] = mine;
    __syncthreads();
    for (int d = 1; d < n; d *= 2) {
        Pair left = {0, 0};
        if (i >= d)
            left = pairs[i - d];
        __syncthreads();
        pairs[i] = mine = combine(left, mine);
        __syncthreads();
    }
    if (i < n)
        out[i] = mine.value;
}
