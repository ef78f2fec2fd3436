// Shifts by amounts that threads compute, beyond the word as well (PTX clamps them).
// launch: 1 5 i32[]:1,-8,123456789,-1,7 u32[]:31,1,5,40,32 u32[15]
// expect: [1, -8, 123456789, -1, 7] ; [31, 1, 5, 40, 32] ; [x & 0xFFFFFFFF for x in (1 << 31, -16, 123456789 << 5, 0, 0)] + [x for x in (0, (2**32 - 8) >> 1, 123456789 >> 5, 0, 0)] + [x & 0xFFFFFFFF for x in (0, -4, 123456789 >> 5, -1, 0)]
extern "C" __global__ void shifts(const int *x, const unsigned *n, unsigned *out)
{
    int i = threadIdx.x;
    unsigned left, logical, arithmetic;
    asm("shl.b32 %0, %1, %2;" : "=r"(left) : "r"(x[i]), "r"(n[i]));
    asm("shr.u32 %0, %1, %2;" : "=r"(logical) : "r"(x[i]), "r"(n[i]));
    asm("shr.s32 %0, %1, %2;" : "=r"(arithmetic) : "r"(x[i]), "r"(n[i]));
    out[i] = left;
    out[i + 5] = logical;
    out[i + 10] = arithmetic;
}
