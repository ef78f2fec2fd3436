// Stable partition about a pivot: smaller ones first, then equal ones, then larger ones.
extern "C" __global__ void partition_stable(const int *in, int *out, int *bounds, int pivot, int n)
{
    __shared__ int less[32], equal[32];
    int i = threadIdx.x;
    int x = in[i];
    less[i] = x < pivot;
    equal[i] = x == pivot;
    __syncthreads();
    int smaller_before = 0, equal_before = 0, smaller = 0, same = 0;
    for (int k = 0; k < n; k++) {
        smaller += less[k];
        same += equal[k];
        if (k < i) {
            smaller_before += less[k];
            equal_before += equal[k];
        }
    }
    int place;
    if (x < pivot)
        place = smaller_before;
    else if (x == pivot)
        place = smaller + equal_before;
    else
        place = smaller + same + (i - smaller_before - equal_before);
    out[place] = x;
    if (i == 0) {
        bounds[0] = smaller;
        bounds[1] = smaller + same;
    }
}
