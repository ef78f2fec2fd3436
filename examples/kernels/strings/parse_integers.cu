// Decimal text to numbers as strtol does: blanks, a sign, digits, the place where it ends, and saturation.
extern "C" __global__ void parse_integers(const char *rows, int width, int *values, int *ends)
{
    const char *s = rows + threadIdx.x * width;
    int i = 0;
    while (i < width && (s[i] == ' ' || s[i] == '\t'))
        i++;
    bool negative = false;
    if (i < width && (s[i] == '-' || s[i] == '+'))
        negative = s[i++] == '-';
    long long value = 0;
    int digits = 0;
    for (; i < width && s[i] >= '0' && s[i] <= '9'; i++, digits++) {
        value = value * 10 + (s[i] - '0');
        if (value > 2147483648ll)
            value = 2147483648ll;
    }
    if (negative)
        value = -value;
    else if (value > 2147483647ll)
        value = 2147483647ll;
    values[threadIdx.x] = (int)value;
    ends[threadIdx.x] = digits ? i : 0;
}
