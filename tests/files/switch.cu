// A switch with a case that falls through, in threads that each take another.
// launch: 1 6 i32[6]
// expect: [7, 1, 2 + 3, 3, 7, 7]
extern "C" __global__ void cases(int *out)
{
    int x = 0;
    switch (threadIdx.x) {
    case 1:
        x = 1;
        break;
    case 2:
        x = 2;
    case 3:
        x += 3;
        break;
    default:
        x = 7;
    }
    out[threadIdx.x] = x;
}
