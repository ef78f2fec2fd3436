// Numbers from 1 to 3999 to Roman numerals and back again.
__constant__ short values[13] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
__constant__ char letters[13][3] = {"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"};

__device__ int digit(char c)
{
    switch (c) {
    case 'I':
        return 1;
    case 'V':
        return 5;
    case 'X':
        return 10;
    case 'L':
        return 50;
    case 'C':
        return 100;
    case 'D':
        return 500;
    case 'M':
        return 1000;
    }
    return 0;
}

extern "C" __global__ void roman_numerals(const int *numbers, char *texts, int *back)
{
    char *out = texts + threadIdx.x * 16;
    int n = numbers[threadIdx.x], length = 0;
    for (int k = 0; k < 13; k++)
        for (; n >= values[k]; n -= values[k])
            for (int j = 0; j < 2 && letters[k][j]; j++)
                out[length++] = letters[k][j];
    for (int j = length; j < 16; j++)
        out[j] = 0;
    int value = 0;
    for (int j = 0; j < length; j++) {
        int here = digit(out[j]), next = j + 1 < length ? digit(out[j + 1]) : 0;
        value += here < next ? -here : here;
    }
    back[threadIdx.x] = value;
}
