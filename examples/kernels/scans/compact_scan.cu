// Stream compaction: the elements that a predicate keeps, in their order; places by a scan.
template <typename Predicate>
__device__ int place_of(int value, bool exists, int *places, Predicate keep)
{
    int t = threadIdx.x;
    places[t] = exists && keep(value);
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        int left = t < d ? 0 : places[t - d];
        __syncthreads();
        places[t] += left;
        __syncthreads();
    }
    return places[t] - 1;
}

extern "C" __global__ void compact_scan(const int *in, int *out, int *count, int divisor, int n)
{
    __shared__ int places[64];
    int t = threadIdx.x;
    int value = t < n ? in[t] : 0;
    auto keep = [divisor](int x) { return x % divisor == 0; };
    int place = place_of(value, t < n, places, keep);
    if (t < n && keep(value))
        out[place] = value;
    if (t == blockDim.x - 1)
        *count = place + 1;
}
