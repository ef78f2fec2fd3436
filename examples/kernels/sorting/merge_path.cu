// Merge two sorted arrays: each thread finds its part on a diagonal of the merge matrix and merges it alone.
extern "C" __global__ void merge_path(const int *a, int na, const int *b, int nb, int *out, int part)
{
    int total = na + nb;
    int diagonal = min((int)(blockIdx.x * blockDim.x + threadIdx.x) * part, total);
    int low = max(0, diagonal - nb), high = min(diagonal, na);
    while (low < high) {
        int i = (low + high) >> 1;
        if (a[i] <= b[diagonal - 1 - i])
            low = i + 1;
        else
            high = i;
    }
    int i = low, j = diagonal - low;
    for (int k = diagonal; k < min(diagonal + part, total); k++) {
        bool take_a = j >= nb || (i < na && a[i] <= b[j]);
        out[k] = take_a ? a[i++] : b[j++];
    }
}
