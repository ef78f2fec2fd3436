// out[i] = text[i] with the letters a to z made capitals; bytes are loaded, compared as signed, stored.
// Launch: any grid and block of one dimension with at least n threads.
extern "C" __global__ void to_upper(const signed char *text, signed char *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    signed char c = text[i];
    if (c >= 'a' && c <= 'z')
        c -= 'a' - 'A';
    out[i] = c;
}
