// Dijkstra on a matrix of weights, one source a thread, with distances and a set of visited nodes of its own.
#define NODES 10
#define NONE 0x7fffffff

extern "C" __global__ void dijkstra_rows(const unsigned char *weights, int *distances)
{
    int source = threadIdx.x;
    int distance[NODES];
    unsigned visited = 0;
    for (int v = 0; v < NODES; v++)
        distance[v] = v == source ? 0 : NONE;
    for (int round = 0; round < NODES; round++) {
        int best = -1;
        for (int v = 0; v < NODES; v++)
            if (!(visited >> v & 1) && distance[v] != NONE && (best < 0 || distance[v] < distance[best]))
                best = v;
        if (best < 0)
            break;
        visited |= 1u << best;
        for (int v = 0; v < NODES; v++) {
            int w = weights[best * NODES + v];
            if (w && distance[best] + w < distance[v])
                distance[v] = distance[best] + w;
        }
    }
    for (int v = 0; v < NODES; v++)
        distances[source * NODES + v] = distance[v] == NONE ? -1 : distance[v];
}
