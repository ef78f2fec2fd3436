// Base64 back to bytes; characters that do not belong set an error flag.
__device__ int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    switch (c) {
    case '+':
        return 62;
    case '/':
        return 63;
    case '=':
        return -2;
    default:
        return -1;
    }
}

extern "C" __global__ void base64_decode(const char *in, unsigned char *out, int *length, int *error)
{
    char4 group = reinterpret_cast<const char4 *>(in)[threadIdx.x];
    int a = value_of(group.x), b = value_of(group.y), c = value_of(group.z), d = value_of(group.w);
    if (a < 0 || b < 0 || c == -1 || d == -1 || (c == -2 && d >= 0)) {
        atomicExch(error, 1);
        return;
    }
    int bytes = c == -2 ? 1 : d == -2 ? 2 : 3;
    unsigned bits = a << 18 | b << 12 | (c < 0 ? 0 : c << 6) | (d < 0 ? 0 : d);
    for (int k = 0; k < bytes; k++)
        out[3 * threadIdx.x + k] = bits >> (16 - 8 * k);
    atomicMax(length, 3 * threadIdx.x + bytes);
}
