// Well-formed UTF-8 of rows (Unicode, table 3-7): the place of the first error or -1, and code points before
// it.
extern "C" __global__ void utf8_validate(const unsigned char *rows, const int *lengths, int width,
                                         int *error, int *points,
                                         unsigned *last)
{
    int t = threadIdx.x;
    const unsigned char *s = rows + t * width;
    const int n = lengths[t];
    int i = 0, count = 0, bad = -1;
    unsigned code = 0;
    while (i < n) {
        unsigned lead = s[i];
        int more;
        unsigned low = 0x80, high = 0xbf, value;
        if (lead < 0x80) {
            more = 0;
            value = lead;
        } else if (lead >= 0xc2 && lead <= 0xdf) {
            more = 1;
            value = lead & 0x1f;
        } else if ((lead & 0xf0) == 0xe0) {
            more = 2;
            value = lead & 0x0f;
            if (lead == 0xe0)
                low = 0xa0;
            if (lead == 0xed)
                high = 0x9f;
        } else if (lead >= 0xf0 && lead <= 0xf4) {
            more = 3;
            value = lead & 0x07;
            if (lead == 0xf0)
                low = 0x90;
            if (lead == 0xf4)
                high = 0x8f;
        } else {
            bad = i;
            break;
        }
        int k = 1;
        for (; k <= more; k++) {
            if (i + k >= n || s[i + k] < low || s[i + k] > high)
                break;
            value = value << 6 | (s[i + k] & 0x3f);
            low = 0x80;
            high = 0xbf;
        }
        if (k <= more) {
            bad = i;
            break;
        }
        code = value;
        count++;
        i += more + 1;
    }
    error[t] = bad;
    points[t] = count;
    last[t] = code;
}
