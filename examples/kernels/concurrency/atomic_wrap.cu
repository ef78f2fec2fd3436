// Counters that wrap (atomicInc, atomicDec), exchanges, and every bitwise atomic, on words that end the same
// in any order.
extern "C" __global__ void atomic_wrap(const unsigned *in, unsigned *words, unsigned long long *wide)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i];
    atomicInc(&words[0], 6);
    atomicDec(&words[1], 9);
    atomicAnd(&words[2], x | 0xff00ff00u);
    atomicOr(&words[3], x & 0x0f0f0f0fu);
    atomicXor(&words[4], x);
    atomicSub(&words[5], x);
    atomicMin(&words[6], x);
    atomicMax((int *)&words[7], (int)x);
    atomicMax(&wide[0], (unsigned long long)x * x);
    atomicMin((long long *)&wide[1], (long long)(int)x * 3);
    atomicXor(&wide[2], (unsigned long long)x << 20);
    atomicAdd(&wide[3], (unsigned long long)x * 0x100000001ull);
}
