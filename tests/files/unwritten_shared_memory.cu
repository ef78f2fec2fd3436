// A thread that needs shared memory which nothing has written in its thread block is a fault.
// launch: 1 4 i32[4] i32:4 i32:0
// fault: uninitialised thread 3,0,0 line 26 4 bytes at offset 16 of '_ZZ9unwrittenE4word', not all written
// launch: 1 4 i32[4] i32:5 i32:0
// expect: [2, 3, 4, 5]
// launch: 2 4 i32[8] i32:5 i32:1
// fault: uninitialised thread 0,0,0 line 26 4 bytes at offset 4 of '_ZZ9unwrittenE4word', not all written
// launch: 1 4 i32[4] i32:5 i32:2
// expect: [2, 3, 4, 5]
// launch: 1 4 i32[4] i32:5 i32:3
// fault: uninitialised thread 0,0,0 line 28 1 bytes at offset 1 of '_ZZ9unwrittenE4byte', not all written
// launch: 1 4 i32[4] i32:5 i32:4
// fault: uninitialised thread 0,0,0 line 30 4 bytes at offset 0 of '_ZZ9unwrittenE5count', not all written
extern "C" __global__ void unwritten(int *out, int n, int how)
{
    __shared__ int word[8];
    __shared__ unsigned char byte[8];
    __shared__ int count;
    int i = threadIdx.x;
    if (how != 1 || blockIdx.x == 0)
        for (int j = i; j < n; j += blockDim.x)
            word[j] = j + 1;
    if (how == 2 || how == 3)
        byte[2 * i] = i;
    __syncthreads();
    int sum = word[i + 1];
    if (how == 3)
        sum += byte[2 * i + 1];
    if (how == 4)
        atomicAdd(&count, 1);
    out[blockIdx.x * blockDim.x + i] = sum + (how == 2 ? byte[2 * i] - i : 0);
}
