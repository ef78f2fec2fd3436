// Quick sort without recursion: each thread keeps a stack of the parts that are left.
#define DEPTH 16

extern "C" __global__ void quick_sort_stack(unsigned char *data, int width)
{
    unsigned char *row = data + (blockIdx.x * blockDim.x + threadIdx.x) * width;
    int stack[2 * DEPTH];
    int top = 0;
    stack[top++] = 0;
    stack[top++] = width - 1;
    while (top > 0) {
        int high = stack[--top];
        int low = stack[--top];
        if (low >= high)
            continue;
        int pivot = row[(low + high) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (row[i] < pivot)
                i++;
            while (row[j] > pivot)
                j--;
            if (i <= j) {
                unsigned char t = row[i];
                row[i++] = row[j];
                row[j--] = t;
            }
        }
        // The longer part waits on the stack, which so stays short.
        if (j - low > high - i) {
            stack[top++] = low;
            stack[top++] = j;
            stack[top++] = i;
            stack[top++] = high;
        } else {
            stack[top++] = i;
            stack[top++] = high;
            stack[top++] = low;
            stack[top++] = j;
        }
    }
}
