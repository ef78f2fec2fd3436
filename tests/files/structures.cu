// Arrays of structures: a stride that is no power of two, fields at displacements, an index that is unsigned.
// launch: 1 3 i32[]:1,2,3,4,5,6,7,8,9 u32:0
// expect: [1, 2, 1 + 2, 4, 5, 4 + 5, 7, 8, 7 + 8]
// launch: 1 3 i32[]:1,2,3,4,5,6,7,8,9 u32:1
// fault: out-of-bounds thread 2,0,0 line 12
// launch: 1 3 i32[]:1,2,3,4,5,6,7,8,9 u32:357913942
// fault: out-of-bounds thread 0,0,0 line 12
struct Point { int x, y, z; };
extern "C" __global__ void points(Point *p, unsigned shift)
{
    unsigned i = threadIdx.x + shift;
    p[i].z = p[i].x + p[i].y;
}
