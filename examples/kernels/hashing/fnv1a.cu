// FNV-1a of strings that end with a zero byte, with 32 and with 64 bits, by one template.
template <typename T, T BASIS, T PRIME>
__device__ T fnv(const char *text)
{
    T hash = BASIS;
    for (; *text; text++) {
        hash ^= (unsigned char)*text;
        hash *= PRIME;
    }
    return hash;
}

extern "C" __global__ void fnv1a(const char *text, const int *starts, unsigned *narrow,
                                 unsigned long long *wide)
{
    int i = threadIdx.x;
    const char *mine = text + starts[i];
    narrow[i] = fnv<unsigned, 2166136261u, 16777619u>(mine);
    wide[i] = fnv<unsigned long long, 14695981039346656037ull, 1099511628211ull>(mine);
}
