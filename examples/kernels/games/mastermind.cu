// Mastermind: exact and near hits of every guess with every code, on a grid of two dimensions.
extern "C" __global__ void mastermind(const unsigned short *codes, uchar2 *scores, int n)
{
    int guess = blockIdx.x * blockDim.x + threadIdx.x, code = blockIdx.y * blockDim.y + threadIdx.y;
    if (guess >= n || code >= n)
        return;
    unsigned a = codes[guess], b = codes[code];
    int exact = 0;
    unsigned in_guess = 0, in_code = 0;
    for (int peg = 0; peg < 4; peg++) {
        unsigned x = a >> 4 * peg & 7, y = b >> 4 * peg & 7;
        exact += x == y;
        in_guess += 1u << 4 * x;
        in_code += 1u << 4 * y;
    }
    int common = 0;
    for (int colour = 0; colour < 8; colour++)
        common += min(in_guess >> 4 * colour & 15, in_code >> 4 * colour & 15);
    scores[code * n + guess] = make_uchar2(exact, common - exact);
}
