// Base64: three bytes a thread to four characters, with padding at the end.
__constant__ char alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

extern "C" __global__ void base64_encode(const unsigned char *in, int n, char *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int left = n - 3 * i;
    if (left <= 0)
        return;
    unsigned bits = in[3 * i] << 16;
    if (left > 1)
        bits |= in[3 * i + 1] << 8;
    if (left > 2)
        bits |= in[3 * i + 2];
    out[4 * i] = alphabet[bits >> 18];
    out[4 * i + 1] = alphabet[bits >> 12 & 63];
    out[4 * i + 2] = left > 1 ? alphabet[bits >> 6 & 63] : '=';
    out[4 * i + 3] = left > 2 ? alphabet[bits & 63] : '=';
}
