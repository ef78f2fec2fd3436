// Atomics whose result is not used.
// launch: 1 5 i32[]:5,-1,3,9 u32[]:7,12,255,0,170
// expect: [max(5, 2), min(-1, -2), 3 + sum(range(5)), 9 - 5] ; [min(7, 3), max(12, 7), 255 & 0xF0, 0 | 31, 170 ^ 1 ^ 2 ^ 3 ^ 4]
extern "C" __global__ void atomics(int *s, unsigned *u)
{
    int i = threadIdx.x;
    atomicMax(&s[0], i - 2);
    atomicMin(&s[1], i - 2);
    atomicAdd(&s[2], i);
    atomicSub(&s[3], 1);
    atomicMin(&u[0], i + 3u);
    atomicMax(&u[1], i + 3u);
    atomicAnd(&u[2], 0xF0u);
    atomicOr(&u[3], 1u << i);
    atomicXor(&u[4], i);
}
