// A product of matrices of signed bytes, four at a time along rows of A and columns of B.
extern "C" __global__ void matmul_int8(const int *a, const int *b_transposed, int *c, int words)
{
    int row = threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    int columns = gridDim.x * blockDim.x;
    int sum = 0;
    for (int k = 0; k < words; k++)
        sum = __dp4a(a[row * words + k], b_transposed[column * words + k], sum);
    c[row * columns + column] = sum;
}
