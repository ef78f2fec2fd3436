// CRC-16 with the polynomial 0x1021, high bits first, in 16-bit arithmetic.
extern "C" __global__ void crc16_ccitt(const unsigned char *data, unsigned short *crcs, int width,
                                       unsigned short start)
{
    unsigned short crc = start;
    for (int i = 0; i < width; i++) {
        crc ^= (unsigned short)(data[threadIdx.x * width + i] << 8);
        for (int bit = 0; bit < 8; bit++) {
            if (crc & 0x8000)
                crc = (unsigned short)((crc << 1) ^ 0x1021);
            else
                crc <<= 1;
        }
    }
    crcs[threadIdx.x] = crc;
}
