// Scalars narrower than a word are extended as their types say.
// launch: 1 1 i32[5] i8:-3 u8:253 i16:-300 u16:65236
// expect: [-3, 253, -300, 65236, -3 + 253 - 300 + 65236]
extern "C" __global__ void narrow(int *out, signed char a, unsigned char b, short c, unsigned short d)
{
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
    out[4] = a + b + c + d;
}
