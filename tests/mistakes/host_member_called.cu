struct P {
  int x;
  int twice() const { return 2 * x; }
};
__global__ void k(P p, int *a) { a[0] = p.twice(); }
