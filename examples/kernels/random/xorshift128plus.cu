// xorshift128+ : two words of 64 bits of state per thread.
typedef unsigned long long u64;

struct Generator {
    u64 s0, s1;
};

__device__ u64 next(Generator &g)
{
    u64 a = g.s0;
    const u64 b = g.s1;
    g.s0 = b;
    a ^= a << 23;
    a ^= a >> 18;
    a ^= b ^ (b >> 5);
    g.s1 = a;
    return a + b;
}

extern "C" __global__ void xorshift128plus(ulonglong2 *states, u64 *out, int draws)
{
    Generator g;
    ulonglong2 state = states[threadIdx.x];
    g.s0 = state.x;
    g.s1 = state.y;
    for (int i = 0; i < draws; i++)
        out[i * blockDim.x + threadIdx.x] = next(g);
    states[threadIdx.x] = make_ulonglong2(g.s0, g.s1);
}
