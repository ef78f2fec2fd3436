// Shifts and rotations of double words by funnel shifts, with amounts that wrap and that clamp.
extern "C" __global__ void funnel_shift(const uint2 *words, const int *amounts, uint4 *out)
{
    int i = threadIdx.x;
    unsigned low = words[i].x, high = words[i].y;
    int n = amounts[i];
    uint4 result;
    result.x = __funnelshift_l(low, high, n);
    result.y = __funnelshift_r(low, high, n);
    result.z = __funnelshift_lc(low, high, n);
    result.w = __funnelshift_rc(low, high, n);
    out[i] = result;
}
