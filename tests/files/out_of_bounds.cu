// An access outside its buffer stops the launch, in either direction and however far.
// launch: 1 4 i32[]:0,1,2,3 i32[4] i32:0
// expect: [0, 1, 2, 3] ; [0, 1, 2, 3]
// launch: 1 4 i32[]:0,1,2,3 i32[4] i32:1
// fault: out-of-bounds thread 3,0,0 line 17
// launch: 1 4 i32[]:0,1,2,3 i32[4] i32:-2
// fault: out-of-bounds thread 0,0,0 line 17
// launch: 1 4 i32[]:0,1,2,3 i32[4] i32:1073741824
// fault: out-of-bounds thread 0,0,0 line 17
// launch: 1 4 i32[]:0,1,2,3 i32[4] i32:-2147483648
// fault: out-of-bounds thread 0,0,0 line 17
// launch: 1 4 i32[]:0,1,2,3 i32[4] i32:524288
// fault: out-of-bounds thread 0,0,0 line 17
extern "C" __global__ void bounds(const int *in, int *out, int shift)
{
    int i = threadIdx.x;
    out[i] = in[i + shift];
}
