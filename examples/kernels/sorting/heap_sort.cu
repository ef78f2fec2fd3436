// One thread a row: heap sort in place.
__device__ void sift_down(int *heap, int root, int size)
{
    int value = heap[root];
    for (;;) {
        int child = 2 * root + 1;
        if (child >= size)
            break;
        if (child + 1 < size && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= value)
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = value;
}

extern "C" __global__ void heap_sort(int *data, int width)
{
    int *heap = data + threadIdx.x * width;
    for (int root = width / 2 - 1; root >= 0; root--)
        sift_down(heap, root, width);
    for (int size = width - 1; size > 0; size--) {
        int top = heap[0];
        heap[0] = heap[size];
        heap[size] = top;
        sift_down(heap, 0, size);
    }
}
