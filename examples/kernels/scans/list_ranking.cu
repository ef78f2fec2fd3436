// The distance of each node of linked lists to its end, by pointer jumping.
extern "C" __global__ void list_ranking(const int *next, int *rank, int n)
{
    __shared__ int link[2][48], distance[2][48];
    int i = threadIdx.x;
    int now = 0;
    link[0][i] = next[i];
    distance[0][i] = next[i] >= 0 ? 1 : 0;
    __syncthreads();
    for (int steps = 1; steps < n; steps *= 2) {
        int target = link[now][i];
        int d = distance[now][i];
        if (target >= 0) {
            d += distance[now][target];
            target = link[now][target];
        }
        link[now ^ 1][i] = target;
        distance[now ^ 1][i] = d;
        now ^= 1;
        __syncthreads();
    }
    rank[i] = distance[now][i];
}
