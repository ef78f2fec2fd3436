// Half words: loads of both signs, stores that leave the other half as it is.
// launch: 1 4 i16[]:-1,2,-300,32767 u16[]:65535,1,2,3 i32[4]
// expect: [-1 + 1, 2 + 1, -300 + 1, -32768] ; [65535, 1, 2, 3] ; [-1 + 65535, 2 + 1, -300 + 2, 32767 + 3]
extern "C" __global__ void halves(short *a, const unsigned short *b, int *sum)
{
    int i = threadIdx.x;
    sum[i] = a[i] + b[i];
    a[i] = a[i] + 1;
}
