// Special registers of the launch and of the lane.
// launch: 2,1,3 2,3,1 i32[4]
// expect: [2, 3, 3, 5]
extern "C" __global__ void registers(int *out)
{
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    atomicMax(&out[0], gridDim.x);
    atomicMax(&out[1], gridDim.z);
    atomicMax(&out[2], blockDim.y);
    atomicMax(&out[3], lane);
}
