// A lock that every thread of a warp takes in turn: the holder leaves the loop only after it has let go.
extern "C" __global__ void spin_lock(int *lock, volatile unsigned *polynomial, const unsigned *terms,
                                     unsigned p)
{
    bool done = false;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            polynomial[0] = (polynomial[0] + terms[i]) % p;
            polynomial[1] = (unsigned)((unsigned long long)polynomial[1] * (terms[i] % p) % p);
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
