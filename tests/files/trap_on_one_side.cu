// A trap on one side of a branch that nothing joins: the launch stops there, though the other side returns.
// launch: 1 4 i32[]:1,2,4,5 i32:0
// expect: [1, 1, 1, 1]
// launch: 1 4 i32[]:1,2,3,5 i32:0
// fault: trap thread 2,0,0 line 15
// launch: 1 4 i32[]:1,2,3,5 i32:1
// fault: trap thread 0,0,0 line 20
// launch: 1 4 i32[]:3,3,3,3 i32:1
// expect: [5, 5, 5, 5]
extern "C" __global__ void one_side(int *a, int other)
{
    int i = threadIdx.x;
    if (other == 0) {
        if (a[i] == 3)
            __trap();
        a[i] = 1;
    } else {
        if (a[i] != 3) {
            a[i] = 1;
            __trap();
        }
        a[i] = 5;
    }
}
