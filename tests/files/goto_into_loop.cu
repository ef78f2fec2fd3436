// A loop that is entered at two places, by some threads at the one and by some at the other.
// launch: 1 4 i32[]:2,0,29,0,-4,0,7,0 i32:8
// expect: [1, -7, 2, -6, -5, -13, 6, -2]
extern "C" __global__ void zigzag(int *x, int n)
{
    int *own = x + 2 * threadIdx.x;
    int k = own[0];
    if (k > n) goto second;
first:
    k = k - 1;
    own[0] = k;
second:
    k = k - n;
    own[1] = k;
    if (k > 0) goto first;
}
