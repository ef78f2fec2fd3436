// Each thread shuffles its own deck (Fisher and Yates) in an array of its own and counts fixed points and
// cycles.
#define CARDS 13

extern "C" __global__ void shuffle_cards(const unsigned *seeds, unsigned char *decks, int *fixed, int *cycles)
{
    int t = threadIdx.x;
    unsigned state = seeds[t];
    unsigned char deck[CARDS];
    for (int i = 0; i < CARDS; i++)
        deck[i] = i;
    for (int i = CARDS - 1; i > 0; i--) {
        state = state * 214013u + 2531011u;
        int j = ((state >> 16) & 0x7fff) % (i + 1);
        unsigned char swap = deck[i];
        deck[i] = deck[j];
        deck[j] = swap;
    }
    int same = 0, loops = 0;
    unsigned seen = 0;
    for (int i = 0; i < CARDS; i++) {
        decks[t * CARDS + i] = deck[i];
        same += deck[i] == i;
        if (seen >> i & 1)
            continue;
        loops++;
        for (int k = i; !(seen >> k & 1); k = deck[k])
            seen |= 1u << k;
    }
    fixed[t] = same;
    cycles[t] = loops;
}
