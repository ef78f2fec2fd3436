// A kernel that reads blockIdx.y alone still runs once for every x.
// launch: 3,2,1 1 i32[2]
// expect: [3, 6]
extern "C" __global__ void rows(int *out)
{
    atomicAdd(&out[blockIdx.y], blockIdx.y + 1);
}
