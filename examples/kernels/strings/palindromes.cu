// For every centre of a text the radius of its longest palindrome; the longest of all by a packed maximum.
extern "C" __global__ void palindromes(const char *text, int n, int *lengths, unsigned *longest)
{
    int centre = blockIdx.x * blockDim.x + threadIdx.x;
    if (centre >= 2 * n - 1)
        return;
    int left = centre / 2, right = left + centre % 2;
    while (left >= 0 && right < n && text[left] == text[right]) {
        left--;
        right++;
    }
    int length = right - left - 1;
    lengths[centre] = length;
    atomicMax(longest, (unsigned)length << 16 | (65535 - (left + 1)));
}
