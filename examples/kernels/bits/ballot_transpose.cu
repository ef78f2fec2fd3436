// The same transpose by ballots: the k-th ballot is the k-th column.
extern "C" __global__ void ballot_transpose(const unsigned *in, unsigned *out)
{
    unsigned row = in[threadIdx.x];
    unsigned column = 0;
    for (int k = 0; k < 32; k++) {
        unsigned votes = __ballot_sync(0xffffffffu, row >> k & 1);
        if (threadIdx.x == k)
            column = votes;
    }
    out[threadIdx.x] = column;
}
