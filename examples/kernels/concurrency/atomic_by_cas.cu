// Atomic operations that the hardware lacks, by loops of compare-and-swap: a product modulo p, a saturating
// sum of bytes in a word, the minimum of 64-bit pairs by their low half.
typedef unsigned long long u64;

template <typename T, typename Function>
__device__ T atomic_update(T *address, Function update)
{
    T old = *(volatile T *)address, assumed;
    do {
        assumed = old;
        old = atomicCAS(address, assumed, update(assumed));
    } while (old != assumed);
    return old;
}

extern "C" __global__ void atomic_by_cas(const unsigned *in, unsigned *product, unsigned *bytes, u64 *pair,
                                         unsigned p)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i];
    atomic_update(product, [=](unsigned old) { return (unsigned)((u64)old * (x % p) % p); });
    int lane = i % 4;
    atomic_update(bytes, [=](unsigned old) {
        unsigned sum = min((old >> 8 * lane & 0xff) + (x & 15), 0xffu);
        return (old & ~(0xffu << 8 * lane)) | sum << 8 * lane;
    });
    u64 mine = (u64)i << 32 | x;
    atomic_update(pair, [=](u64 old) { return (unsigned)mine < (unsigned)old ? mine : old; });
}
