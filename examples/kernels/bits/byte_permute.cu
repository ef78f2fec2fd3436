// Bytes put together by __byte_perm with selectors that threads compute.
extern "C" __global__ void byte_permute(const unsigned *a, const unsigned *b, const unsigned *selectors,
                                        unsigned *out)
{
    int i = threadIdx.x;
    unsigned permuted = __byte_perm(a[i], b[i], selectors[i]);
    unsigned odd = __byte_perm(a[i], b[i], 0x7531);
    unsigned broadcast = __byte_perm(a[i], 0, 0x1111 * (selectors[i] & 3));
    out[3 * i] = permuted;
    out[3 * i + 1] = odd;
    out[3 * i + 2] = broadcast;
}
