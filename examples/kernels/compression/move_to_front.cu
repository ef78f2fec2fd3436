// Move-to-front coding of rows over an alphabet of sixteen symbols, kept as nibbles of one 64-bit word.
extern "C" __global__ void move_to_front(const unsigned char *rows, int width, unsigned char *codes)
{
    unsigned long long order = 0xfedcba9876543210ull;
    for (int k = 0; k < width; k++) {
        unsigned symbol = rows[threadIdx.x * width + k];
        int place = 0;
        while ((order >> 4 * place & 15) != symbol)
            place++;
        codes[threadIdx.x * width + k] = place;
        unsigned long long below = order & ((1ull << 4 * place) - 1);
        unsigned long long above = place == 15 ? 0 : order >> 4 * (place + 1) << 4 * (place + 1);
        order = above | below << 4 | symbol;
    }
}
