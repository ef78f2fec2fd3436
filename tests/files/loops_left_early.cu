// Nested loops that are left by a jump out of both, by a return, and at their ends: few predicates suffice.
// launch: 1 9 i32[9] i32:5
// expect: [1, 1, 2, 2, 26, 7, 26, 16, 0]
extern "C" __global__ void nested(int *out, int n)
{
    int i = threadIdx.x;
    int sum = 0;
#pragma unroll 1
    for (int a = 0; a < n; a++) {
#pragma unroll 1
        for (int b = a; b < i; b++) {
            if ((a ^ b) == i)
                goto found;
            sum += a * b;
            if (sum > 50)
                return;
        }
    }
found:
    out[i] = sum + 1;
}
