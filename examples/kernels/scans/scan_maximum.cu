// The largest element so far and the largest drop from an earlier element, in one warp per row.
extern "C" __global__ void scan_maximum(const int *in, int *highest, int *drop, int columns)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    int lane = threadIdx.x;
    int carry = -2147483647 - 1;
    for (int first = 0; first < columns; first += 32) {
        int k = first + lane;
        int value = k < columns ? in[row * columns + k] : carry;
        int best = value;
        for (int d = 1; d < 32; d *= 2) {
            int other = __shfl_up_sync(0xffffffff, best, d);
            if (lane >= d)
                best = max(best, other);
        }
        best = max(best, carry);
        if (k < columns) {
            highest[row * columns + k] = best;
            drop[row * columns + k] = best - value;
        }
        carry = __shfl_sync(0xffffffff, best, 31);
    }
}
