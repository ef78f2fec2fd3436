// Inverses modulo m by the extended Euclidean algorithm with signed division; 0 where there is none.
extern "C" __global__ void extended_gcd(const int *numbers, int *inverses, int m)
{
    int a = numbers[threadIdx.x] % m;
    if (a < 0)
        a += m;
    int r0 = m, r1 = a, t0 = 0, t1 = 1;
    while (r1 != 0) {
        int q = r0 / r1;
        int r = r0 - q * r1, t = t0 - q * t1;
        r0 = r1;
        r1 = r;
        t0 = t1;
        t1 = t;
    }
    inverses[threadIdx.x] = r0 == 1 ? (t0 < 0 ? t0 + m : t0) : 0;
}
