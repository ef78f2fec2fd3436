// All shortest paths of a small graph: a thread an entry, a barrier a pivot; with the next step on each path.
#define INFINITE 1000000

extern "C" __global__ void floyd_warshall(int *distance, int *next, int n)
{
    int i = threadIdx.y, j = threadIdx.x;
    int at = i * n + j;
    next[at] = distance[at] < INFINITE ? j : -1;
    for (int k = 0; k < n; k++) {
        __syncthreads();
        int through = distance[i * n + k] + distance[k * n + j];
        bool shorter = through < distance[at];
        int step = next[i * n + k];
        __syncthreads();
        if (shorter) {
            distance[at] = through;
            next[at] = step;
        }
    }
}
