// The largest element and its first place: pairs in a structure, combined in a tree.
struct Candidate {
    int value;
    int index;
};

__device__ Candidate better(const Candidate &a, const Candidate &b)
{
    if (a.value != b.value)
        return a.value > b.value ? a : b;
    return a.index < b.index ? a : b;
}

extern "C" __global__ void argmax_block(const int *in, int *value, int *index, int n)
{
    __shared__ Candidate best[64];
    int t = threadIdx.x;

    Candidate mine = {-2147483647 - 1, 2147483647};
    for (int i = t; i < n; i += blockDim.x) {
        Candidate other = {in[i], i};
        mine = better(mine, other);
    }
    best[t] = mine;
    __syncthreads();
    for (int half = blockDim.x >> 1; half > 0; half >>= 1) {
        if (t < half)
            best[t] = better(best[t], best[t + half]);
        __syncthreads();
    }
    if (t == 0) {
        *value = best[0].value;
        *index = best[0].index;
    }
}
