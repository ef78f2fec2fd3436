// Hamming (7,4) codes of nibbles with the parity of all in bit 7: encode, disturb, correct or detect.
__device__ unsigned encode(unsigned data)
{
    unsigned d0 = data & 1, d1 = data >> 1 & 1, d2 = data >> 2 & 1, d3 = data >> 3 & 1;
    unsigned word = (d0 ^ d1 ^ d3) | (d0 ^ d2 ^ d3) << 1 | d0 << 2;
    word |= (d1 ^ d2 ^ d3) << 3 | d1 << 4 | d2 << 5 | d3 << 6;
    return word | (__popc(word) & 1) << 7;
}

extern "C" __global__ void hamming_code(const unsigned char *nibbles, const unsigned char *noise,
                                        unsigned char *sent,
                                        unsigned char *received, signed char *state)
{
    int i = threadIdx.x;
    unsigned word = encode(nibbles[i] & 15u);
    sent[i] = word;
    word ^= noise[i];
    int syndrome = 0;
    for (int bit = 0; bit < 7; bit++)
        if (word >> bit & 1)
            syndrome ^= bit + 1;
    bool odd = __popc(word) & 1;
    if (syndrome && !odd) {
        state[i] = -1;
        received[i] = 0xff;
        return;
    }
    state[i] = odd ? 1 : 0;
    if (odd && syndrome)
        word ^= 1u << (syndrome - 1);
    received[i] = (word >> 2 & 1) | (word >> 3 & 14);
}
