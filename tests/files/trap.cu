// __trap() stops the launch for the threads that come to it.
// launch: 1 4 i32[]:1,2,3,4
// expect: [1, 2, 3, 4]
// launch: 1 4 i32[]:1,2,-3,4
// fault: trap thread 2,0,0 line 9
extern "C" __global__ void stop(const int *in)
{
    if (in[threadIdx.x] < 0)
        __trap();
}
