// lengths[i] = the length of the string in row i of `text`: up to its zero byte, or all `width` bytes.
// Launch: any grid and block of one dimension with at least `rows` threads.
extern "C" __global__ void string_length(const char *text, int *lengths, int width, int rows)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows)
        return;
    const char *row = text + i * width;
    int length = 0;
#pragma unroll 1
    while (length < width && row[length] != 0)
        length++;
    lengths[i] = length;
}
