// Digits: whether a number is happy (Floyd's cycle detection), its digital root, its digits reversed.
__device__ unsigned digit_squares(unsigned n)
{
    unsigned sum = 0;
    while (n > 0) {
        unsigned digit = n % 10;
        sum += digit * digit;
        n /= 10;
    }
    return sum;
}

extern "C" __global__ void happy_numbers(const unsigned *numbers, int *happy, int *root,
                                         unsigned long long *reversed)
{
    int i = threadIdx.x;
    unsigned slow = numbers[i], fast = slow;
    do {
        slow = digit_squares(slow);
        fast = digit_squares(digit_squares(fast));
    } while (slow != fast);
    happy[i] = slow == 1;
    root[i] = numbers[i] == 0 ? 0 : 1 + (numbers[i] - 1) % 9;
    unsigned long long back = 0;
    for (unsigned n = numbers[i]; n; n /= 10)
        back = back * 10 + n % 10;
    reversed[i] = back;
}
