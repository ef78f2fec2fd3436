// The schoolbook product of two numbers of eight words: columns in parallel, carries in one thread.
#define WORDS 8

extern "C" __global__ void big_multiply(const unsigned *a, const unsigned *b, unsigned *product)
{
    __shared__ unsigned long long low[2 * WORDS];
    __shared__ unsigned high[2 * WORDS];
    int column = threadIdx.x;
    unsigned long long sum = 0;
    unsigned overflow = 0;
    for (int i = 0; i < WORDS; i++) {
        int j = column - i;
        if (j < 0 || j >= WORDS)
            continue;
        unsigned long long term = (unsigned long long)a[i] * b[j];
        sum += term;
        overflow += sum < term;
    }
    low[column] = sum;
    high[column] = overflow;
    __syncthreads();
    if (column == 0) {
        unsigned long long carry = 0;
        unsigned long long carry_high = 0;
        for (int k = 0; k < 2 * WORDS; k++) {
            unsigned long long total = low[k] + carry;
            unsigned long long above = high[k] + carry_high + (total < carry ? 1 : 0);
            product[k] = (unsigned)total;
            carry = total >> 32 | above << 32;
            carry_high = above >> 32;
        }
    }
}
