// Bitwise functions of three values that each thread has its own of.
// launch: 1 4 u32[]:0,4294967295,252645135,305419896 u32[]:1,2,3,2863311530 u32[]:4,5,4042322160,3435973836 u32[16]
// expect: [0, 4294967295, 252645135, 305419896] ; [1, 2, 3, 2863311530] ; [4, 5, 4042322160, 3435973836] ; [f(a, b, c) for f in (lambda a, b, c: (a & b) | (a & c) | (b & c), lambda a, b, c: a ^ b ^ c, lambda a, b, c: (a & b) | (~a & c & 0xFFFFFFFF), lambda a, b, c: ~(a | b & ~c) & 0xFFFFFFFF) for a, b, c in zip((0, 4294967295, 252645135, 305419896), (1, 2, 3, 2863311530), (4, 5, 4042322160, 3435973836))]
extern "C" __global__ void logic(const unsigned *x, const unsigned *y, const unsigned *z, unsigned *out)
{
    int i = threadIdx.x, n = blockDim.x;
    unsigned a = x[i], b = y[i], c = z[i];
    out[i] = (a & b) | (a & c) | (b & c);
    out[n + i] = a ^ b ^ c;
    out[2 * n + i] = (a & b) | (~a & c);
    out[3 * n + i] = ~(a | (b & ~c));
}
