// The different elements of a, which is sorted: out[0] to out[count[0] - 1].
// Launch: one thread. On a machine whose pass is one lane, work is what costs, and this does the least.
extern "C" __global__ void unique(const int *a, int *out, int *count, int n)
{
    int last = a[0], found = 1;
    out[0] = last;
#pragma unroll 1
    for (int i = 1; i < n; i++) {
        if (a[i] != last) {
            last = a[i];
            out[found] = last;
            found++;
        }
    }
    count[0] = found;
}
