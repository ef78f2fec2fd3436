// Numbers to text in a base from 2 to 16, right-aligned in twelve characters or as many stars.
#define WIDTH 12

extern "C" __global__ void print_integers(const int *values, char *rows, unsigned base)
{
    char *row = rows + threadIdx.x * WIDTH;
    const char *digits = "0123456789abcdef";
    int value = values[threadIdx.x];
    unsigned rest = value < 0 ? 0u - (unsigned)value : (unsigned)value;
    char buffer[33];
    int length = 0;
    do {
        buffer[length++] = digits[rest % base];
        rest /= base;
    } while (rest);
    if (value < 0)
        buffer[length++] = '-';
    for (int k = 0; k < WIDTH; k++) {
        int from = WIDTH - 1 - k;
        row[k] = length > WIDTH ? '*' : from < length ? buffer[from] : ' ';
    }
}
