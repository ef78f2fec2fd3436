// A kernel of nothing but an end.
// launch: 2,2,2 3 i32[1]
// expect: [0]
extern "C" __global__ void empty(int *unused)
{
}
