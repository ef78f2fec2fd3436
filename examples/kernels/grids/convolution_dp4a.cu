// A convolution of bytes over four channels with signed weights of 8 bits: one dot product of four a tap.
extern "C" __global__ void convolution_dp4a(const int *pixels, const int *weights, const int *bias,
                                            signed char *out, int width,
                                            int shift)
{
    int x = threadIdx.x, filter = blockIdx.x;
    int sum = bias[filter];
    for (int tap = 0; tap < 3; tap++)
        sum = __dp4a(pixels[x + tap], weights[3 * filter + tap], sum);
    int rounded = (sum + (1 << (shift - 1))) >> shift;
    if (rounded < -128)
        rounded = -128;
    else if (rounded > 127)
        rounded = 127;
    out[filter * width + x] = (signed char)rounded;
}
