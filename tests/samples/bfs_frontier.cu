#include <queue>
#include <vector>
#include <limits>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>

#define INF 0x7fffffff

struct Graph {
  std::vector<int> rowOffsets;
  std::vector<int> columns;
  int vertices() const { return static_cast<int>(rowOffsets.size()) - 1; }
};

// One level of a breadth-first search: a thread looks at one vertex.
__global__ void bfsLevel(const int *rowOffsets, const int *columns, int *distance, int vertices, int level, int *changed) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vertices || distance[v] != level) return;
  for (int e = rowOffsets[v]; e < rowOffsets[v + 1]; ++e) {
    int w = columns[e];
    if (distance[w] == INF) {
      distance[w] = level + 1;
      *changed = 1;
    }
  }
}

std::vector<int> bfsHost(const Graph &g, int root) {
  std::vector<int> distance(g.vertices(), std::numeric_limits<int>::max());
  std::queue<int> todo;
  todo.push(root);
  distance[root] = 0;
  while (!todo.empty()) {
    int v = todo.front();
    todo.pop();
    for (int e = g.rowOffsets[v]; e < g.rowOffsets[v + 1]; ++e)
      if (distance[g.columns[e]] == std::numeric_limits<int>::max()) {
        distance[g.columns[e]] = distance[v] + 1;
        todo.push(g.columns[e]);
      }
  }
  return distance;
}

int main() {
  Graph g{{0, 2, 3, 4, 4}, {1, 2, 3, 3}};
  auto expected = bfsHost(g, 0);
  for (int level = 0, changed = 1; changed; ++level) bfsLevel<<<1, 32>>>(nullptr, nullptr, nullptr, 4, level, &changed);
}
