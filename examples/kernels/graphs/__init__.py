"""Searches, components, shortest paths, orders and colours of graphs."""

from __future__ import annotations

import functools
import itertools

import networkx as nx
import numpy as np

from kernels.table import Array, Kernel, draw, i32, ints, junk, kernel, launch, put, rows_of, u32, u64, zeros

Edge = tuple[int, int]


def _edges(offsets: Array, targets: Array) -> list[Edge]:
    """The edges (from, to) of rows of targets."""
    bounds = ints(offsets)
    return [(v, w) for v in range(len(bounds) - 1) for w in ints(targets[bounds[v] : bounds[v + 1]])]


def _directed(n: int, edges: list[Edge]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(edges)
    return graph


def _levels(offsets: Array, neighbours: Array, level: Array, n: int, source: int) -> None:
    depths = nx.single_source_shortest_path_length(_directed(n, _edges(offsets, neighbours)), source)
    level[:n] = [depths.get(v, -1) for v in range(n)]


def _distances(
    offsets: Array, neighbours: Array, distance: Array, reached: Array, n: int, source: int
) -> None:
    _levels(offsets, neighbours, distance, n, source)
    reached[0] = np.count_nonzero(distance[:n] >= 0)


def _smallest_of_component(n: int, edges: list[Edge]) -> tuple[list[int], int]:
    graph = _directed(n, edges).to_undirected()
    parts = list(nx.connected_components(graph))
    smallest = {v: min(part) for part in parts for v in part}
    return [smallest[v] for v in range(n)], len(parts)


def _components(edges: Array, m: int, label: Array, n: int) -> None:
    label[:n], _ = _smallest_of_component(n, [(a, b) for a, b in rows_of(edges, 2)[:m]])


def _union_find(start: Array, end: Array, m: int, root: Array, n: int, sets: Array) -> None:
    root[:n], sets[0] = _smallest_of_component(n, list(zip(ints(start[:m]), ints(end[:m]), strict=True)))


_INFINITE = 1000000


def _floyd_warshall(distance: Array, following: Array, n: int) -> None:
    """Weights are such that every shortest path is the only one."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    weights = distance.reshape(n, n).tolist()
    graph.add_weighted_edges_from(
        (i, j, weights[i][j]) for i, j in itertools.permutations(range(n), 2) if weights[i][j] < _INFINITE
    )
    for i, (lengths, paths) in nx.all_pairs_dijkstra(graph):
        for j in range(n):
            distance[i * n + j] = lengths.get(j, _INFINITE)
            following[i * n + j] = paths[j][min(1, len(paths[j]) - 1)] if j in paths else -1


def _bellman_ford(edges: Array, m: int, distance: Array, n: int, source: int, negative: Array) -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((a, b, w) for a, b, w in rows_of(edges, 3)[:m])
    lengths = nx.single_source_bellman_ford_path_length(graph, source)
    distance[:n] = [lengths.get(v, 2**60) for v in range(n)]
    negative[0] = 0


def _dijkstra(weights: Array, distances: Array) -> None:
    graph = nx.from_numpy_array(weights.reshape(10, 10).astype(int), create_using=nx.DiGraph)
    for source in range(10):
        lengths = nx.single_source_dijkstra_path_length(graph, source)
        put(distances, [int(lengths.get(v, -1)) for v in range(10)], at=10 * source)


def _neighbours(rows: Array, n: int) -> list[Edge]:
    return [(v, w) for v, row in enumerate(ints(rows[:n])) for w in range(n) if row >> w & 1]


def _triangles(rows: Array, n: int, per_node: Array, total: Array) -> None:
    found = nx.triangles(_directed(n, _neighbours(rows, n)).to_undirected())
    assert isinstance(found, dict)
    per_node[:n] = [found[v] for v in range(n)]
    total[0] = sum(found.values()) // 3


def _topological(offsets: Array, targets: Array, n: int, levels: Array) -> None:
    graph = _directed(n, _edges(offsets, targets))
    behind_cycles = {
        w
        for part in nx.strongly_connected_components(graph)
        if len(part) > 1 or graph.has_edge(*[min(part)] * 2)
        for v in part
        for w in (v, *nx.descendants(graph, v))
    }
    graph.remove_nodes_from(behind_cycles)
    levels[:n] = -1
    for wave, nodes in enumerate(nx.topological_generations(graph)):
        levels[list(nodes)] = wave


def _priority(v: int) -> int:
    v = v ^ 61 ^ v >> 16
    v = v * 9 % 2**32
    v = (v ^ v >> 4) * 0x27D4EB2D % 2**32
    return v ^ v >> 15


def _colouring(offsets: Array, neighbours: Array, n: int, colour: Array, rounds: Array) -> None:
    """Greedy colours in falling priority; a node's round is the longest chain of priorities above it."""
    graph = _directed(n, _edges(offsets, neighbours)).to_undirected()
    colours: dict[int, int] = {}
    depth: dict[int, int] = {}
    for v in sorted(range(n), key=_priority, reverse=True):
        before = [w for w in graph[v] if w in colours]
        depth[v] = 1 + max((depth[w] for w in before), default=0)
        colours[v] = next(c for c in range(n) if c not in {colours[w] for w in before})
    colour[:n] = [colours[v] for v in range(n)]
    rounds[0] = max(depth.values())


def _spanning(start: Array, end: Array, weight: Array, m: int, n: int, chosen: Array, total: Array) -> None:
    """Kruskal, which takes the first of edges of one weight, as the packed keys do."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    chosen[:m] = 0
    total[0] = 0
    for w, e in sorted((int(weight[e]), e) for e in range(m)):
        if not nx.has_path(graph, int(start[e]), int(end[e])):
            graph.add_edge(int(start[e]), int(end[e]))
            chosen[e] = 1
            total[0] += w


def _page_rank(offsets: Array, sources: Array, degree: Array, n: int, rounds: int, rank: Array) -> None:
    ranks = [65536] * n
    for _ in range(rounds):
        shares = [r // d if d else 0 for r, d in zip(ranks, ints(degree[:n]), strict=True)]
        sums = [0] * n
        for v, w in _edges(offsets, sources):
            sums[v] += shares[w]
        ranks = [65536 * 15 // 100 + total * 85 // 100 for total in sums]
    rank[:n] = ranks


def _closure(rows: Array, pairs: Array, n: int) -> None:
    graph = _directed(n, _neighbours(rows, n))
    for v in range(n):
        targets = nx.descendants(graph, v)
        if any(nx.has_path(graph, w, v) for w in graph[v]):
            targets = targets | {v}
        rows[v] = sum(1 << w for w in targets)
    pairs[0] += sum(row.bit_count() for row in ints(rows))


# Graphs of the launches.


def _random_edges(seed: int, n: int, m: int) -> list[Edge]:
    """About m edges between different nodes, each once, in order."""
    ends = draw(seed, 2 * m, 0, n).reshape(-1, 2).tolist()
    return sorted({(a, b) for a, b in ends if a != b})


def _both_ways(edges: list[Edge]) -> list[Edge]:
    return sorted({*edges, *((b, a) for a, b in edges)})


def _compressed(n: int, edges: list[Edge]) -> tuple[Array, Array]:
    """Offsets of rows and the targets in them."""
    offsets = np.searchsorted([a for a, _ in edges], range(n + 1))
    return offsets.astype(np.int32), i32(*(b for _, b in edges))


def _matrix(seed: int, n: int, share: int) -> Array:
    """A matrix of weights whose path lengths are all different; one in `share` is there."""
    weights = draw(seed, n * n, 100, 9000)
    weights[draw(seed + 1, n * n, 0, share) > 0] = _INFINITE
    weights[:: n + 1] = 0
    return weights


def _bit_rows(n: int, edges: list[Edge]) -> list[int]:
    return [sum(1 << b for a, b in edges if a == v) for v in range(n)]


def _weighted(seed: int, n: int, m: int) -> list[tuple[int, int, int]]:
    """Edges with weights of both signs but no cycle below zero: by a potential of each node."""
    edges = _random_edges(seed, n, m)
    potential, slack = ints(draw(seed, n, -500, 500)), ints(draw(seed + 1, len(edges), 0, 300))
    return [(a, b, potential[b] - potential[a] + extra) for (a, b), extra in zip(edges, slack, strict=True)]


_PATH = _compressed(3, [(0, 1), (1, 2)])
_SPARSE = _compressed(40, _both_ways(_random_edges(1, 40, 45)))
_DAG = [(a, b) for a, b in _random_edges(2, 30, 60) if a < b]
_LOOPED = _compressed(30, sorted([*_DAG, (29, 25), (25, 29)]))
_PAIRS = _random_edges(3, 48, 36)
_HEAVY = _weighted(4, 24, 80)
_LINKS = _random_edges(5, 30, 70)
_DENSE = _both_ways(_random_edges(6, 28, 110))
_TREE = _random_edges(7, 32, 70)
_WEB = _random_edges(8, 64, 90)


def _degrees(n: int, edges: list[Edge]) -> Array:
    return i32(*([a for a, _ in edges].count(v) for v in range(n)))


def _columns(edges: list[Edge]) -> tuple[Array, Array]:
    return i32(*(a for a, _ in edges)), i32(*(b for _, b in edges))


_row = functools.partial(kernel, "graphs")

KERNELS: tuple[Kernel, ...] = (
    _row("bfs_frontier", _levels,
        launch(1, 3, *_PATH, junk(3), 3, 0), launch(1, 32, *_SPARSE, junk(40), 40, 7)),
    _row("bfs_queue", _distances,
        launch(1, 2, *_PATH, junk(3), junk(1), 3, 1), launch(1, 32, *_SPARSE, junk(40), junk(1), 40, 3)),
    _row("components_labels", _components,
        launch(1, 2, i32(0, 2), 1, junk(3), 3),
        launch(1, 32, i32(*itertools.chain(*_PAIRS)), len(_PAIRS), junk(48), 48)),
    _row("union_find", _union_find,
        launch(1, 2, i32(0, 1), i32(2, 0), 2, junk(4), 4, junk(1)),
        launch(1, 32, *_columns(_PAIRS), len(_PAIRS), junk(48), 48, junk(1))),
    _row("floyd_warshall", _floyd_warshall,
        launch(1, (2, 2, 1), i32(0, 5, _INFINITE, 0), junk(4), 2),
        launch(1, (10, 10, 1), _matrix(9, 10, 4), junk(100), 10)),
    _row("bellman_ford", _bellman_ford,
        launch(1, 2, i32(0, 1, 5, 1, 2, -3), 2, junk(3, np.int64), 3, 0, junk(1)),
        launch(1, 32, i32(*itertools.chain(*_HEAVY)), len(_HEAVY), junk(24, np.int64), 24, 5, junk(1))),
    _row("dijkstra_rows", _dijkstra,
        launch(1, 10, (draw(10, 100, 0, 200) * (draw(11, 100, 0, 4) == 0)).astype(np.uint8), junk(100))),
    _row("triangle_count", _triangles,
        launch(1, 32, u32(6, 5, 3), 3, junk(3), junk(1)),
        launch(1, 32, u32(*_bit_rows(28, _DENSE)), 28, junk(28), junk(1))),
    _row("topological_levels", _topological,
        launch(1, 64, *_PATH, 3, junk(3)), launch(1, 64, *_LOOPED, 30, junk(30))),
    _row("graph_coloring", _colouring,
        launch(1, 3, *_compressed(3, _both_ways([(0, 1), (1, 2)])), 3, junk(3), junk(1)),
        launch(1, 32, *_compressed(28, _DENSE), 28, junk(28), junk(1))),
    _row("boruvka_round", _spanning,
        launch(1, 32, i32(0, 1, 0), i32(1, 2, 2), i32(5, 3, 4), 3, 3, junk(3, np.uint8), junk(1)),
        launch(1, 32, *_columns(_TREE), draw(12, len(_TREE), 1, 20), len(_TREE), 32, junk(len(_TREE),
            np.uint8),
            junk(1))),
    _row("page_rank", _page_rank,
        launch(1, 3, *_PATH, i32(0, 1, 1), 3, 2, junk(3)),
        launch(1, 32, *_compressed(30, _LINKS), _degrees(30, [(b, a) for a, b in _LINKS]), 30, 8, junk(30))),
    _row("transitive_closure", _closure,
        launch(1, 3, u64(2, 4, 0), zeros(1), 3), launch(1, 64, u64(*_bit_rows(64, _WEB)), i32(3), 64)),
)  # fmt: skip
