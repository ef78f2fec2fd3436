// Fibonacci numbers modulo m by fast doubling.
extern "C" __global__ void fibonacci_doubling(const unsigned *indices, unsigned *out, unsigned m)
{
    unsigned n = indices[threadIdx.x];
    unsigned long long a = 0, b = 1 % m;
    for (int bit = 31 - __clz(n); bit >= 0; bit--) {
        unsigned long long c = a * ((2 * b + m - a) % m) % m;
        unsigned long long d = (a * a + b * b) % m;
        if (n >> bit & 1) {
            a = d;
            b = (c + d) % m;
        } else {
            a = c;
            b = d;
        }
    }
    out[threadIdx.x] = (unsigned)a;
}
