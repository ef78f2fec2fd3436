// What is read before it is known that it is wanted may be unwritten, and so may what a mask leaves out.
// launch: 1 8 i32[8] i32:8
// expect: [0, 1, 2, 3, 4, 5, 6, 7]
// launch: 1 8 i32[8] i32:9
// fault: uninitialised thread 7,0,0 line 14 4 bytes at offset 32 of '_ZZ7guardedE4word', not all written
extern "C" __global__ void guarded(int *out, int n)
{
    __shared__ int word[9];
    int i = threadIdx.x;
    word[i] = i;
    __syncthreads();
    volatile int *after = word;
    int next =
        after[i + 1];
    bool used = (i + 1 < n) & (next > 99);
    out[i] = used ? next : i;
}
