// The check digit of Luhn's for numbers of sixteen decimal digits, packed four bits a digit.
extern "C" __global__ void luhn_check(const unsigned long long *cards, int *valid, int *wanted)
{
    unsigned long long card = cards[threadIdx.x];
    int sum = 0;
    for (int position = 0; position < 16; position++) {
        int digit = card >> 4 * position & 15;
        if (position % 2) {
            digit *= 2;
            if (digit > 9)
                digit -= 9;
        }
        sum += digit;
    }
    valid[threadIdx.x] = sum % 10 == 0;
    wanted[threadIdx.x] = (10 - (sum - (int)(card & 15)) % 10) % 10;
}
