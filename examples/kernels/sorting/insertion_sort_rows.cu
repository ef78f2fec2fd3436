// Each thread sorts a row of eight in an array of its own.
#define WIDTH 8

extern "C" __global__ void insertion_sort_rows(int *rows, int count)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count)
        return;
    int a[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        a[i] = rows[row * WIDTH + i];
    for (int i = 1; i < WIDTH; i++) {
        int key = a[i];
        int j = i - 1;
        while (j >= 0 && a[j] > key) {
            a[j + 1] = a[j];
            j--;
        }
        a[j + 1] = key;
    }
    for (int i = 0; i < WIDTH; i++)
        rows[row * WIDTH + i] = a[i];
}
