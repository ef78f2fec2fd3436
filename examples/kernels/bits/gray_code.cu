// Gray code to and fro, and the bit that changes from one code to the next.
extern "C" __global__ void gray_code(const unsigned *numbers, unsigned *codes, unsigned *back, int *changes)
{
    int i = threadIdx.x;
    unsigned x = numbers[i];
    unsigned gray = x ^ (x >> 1);
    codes[i] = gray;
    unsigned y = gray;
    for (unsigned shift = 1; shift < 32; shift <<= 1)
        y ^= y >> shift;
    back[i] = y;
    unsigned next = (x + 1) ^ ((x + 1) >> 1);
    changes[i] = __ffs(gray ^ next) - 1;
}
