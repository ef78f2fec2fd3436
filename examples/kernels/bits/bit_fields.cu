// Signed and unsigned bit fields of structures, packed and unpacked.
struct Instruction {
    unsigned opcode : 6;
    unsigned rd : 5;
    unsigned rs : 5;
    int offset : 11;
    unsigned set_flags : 1;
    int scale : 4;
};

union Word {
    Instruction fields;
    unsigned raw;
};

extern "C" __global__ void bit_fields(unsigned *words, int *unpacked)
{
    int i = threadIdx.x;
    Word w;
    w.raw = words[i];
    int *row = unpacked + 6 * i;
    row[0] = w.fields.opcode;
    row[1] = w.fields.rd;
    row[2] = w.fields.rs;
    row[3] = w.fields.offset;
    row[4] = w.fields.set_flags;
    row[5] = w.fields.scale;
    unsigned swap = w.fields.rd;
    w.fields.rd = w.fields.rs;
    w.fields.rs = swap;
    w.fields.offset = -w.fields.offset;
    w.fields.set_flags ^= 1;
    words[i] = w.raw;
}
