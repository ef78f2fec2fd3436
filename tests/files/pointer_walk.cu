// A pointer that walks through its buffer, forwards for some threads and backwards for the others.
// launch: 1 4 i32[]:1,2,3,4,5,6,7,8 i32[4] i32:3
// expect: [1, 2, 3, 4, 5, 6, 7, 8] ; [3 + 4 + 5, 4 + 3 + 2, 5 + 6 + 7, 6 + 5 + 4]
extern "C" __global__ void walk(const int *x, int *out, int n)
{
    int i = threadIdx.x;
    const int *p = x + 2 + i;
    int step = i & 1 ? -1 : 1;
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        sum += *p;
        p += step;
    }
    out[i] = sum;
}
