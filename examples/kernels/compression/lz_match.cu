// The longest earlier match for every position of a text (LZ77): length and distance, nearest of equals.
extern "C" __global__ void lz_match(const unsigned char *text, int n, int window, unsigned *matches)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int best = 0, distance = 0;
    for (int d = 1; d <= window && d <= i; d++) {
        int length = 0;
        while (i + length < n && length < 255 && text[i + length] == text[i + length - d])
            length++;
        if (length > best) {
            best = length;
            distance = d;
        }
    }
    matches[i] = (unsigned)best << 16 | distance;
}
