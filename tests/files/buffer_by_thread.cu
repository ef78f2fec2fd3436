// A pointer that is each thread's own, read and written through.
// launch: 1 6 i32[]:1,2,3,4,5,6 i32[]:10,20,30,40,50,60
// expect: [1, 102, 3, 104, 5, 106] ; [110, 20, 130, 40, 150, 60]
extern "C" __global__ void either(int *a, int *b)
{
    int i = threadIdx.x;
    int *p = i & 1 ? a : b;
    p[i] = p[i] + 100;
}
