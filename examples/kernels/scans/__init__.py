"""Prefix sums and what is built on them: compaction, partition, list ranking."""

from __future__ import annotations

import functools

import numpy as np

from kernels.table import Array, Kernel, draw, i32, ints, junk, kernel, launch, mixed, put, u32, zeros


def _running(values: list[int]) -> list[int]:
    return [sum(values[: k + 1]) for k in range(len(values))]


def _inclusive(values: Array, out: Array, n: int | None = None) -> None:
    put(out, _running(ints(values)))


def _exclusive(values: Array, out: Array, n: int) -> None:
    put(out, [0, *_running(ints(values))[:-1]])


def _segmented(values: Array, heads: Array, out: Array, n: int) -> None:
    starts = sorted({0, *np.flatnonzero(heads[:n]).tolist()})
    for first, last in zip(starts, [*starts[1:], n], strict=True):
        put(out, _running(ints(values[first:last])), at=first)


def _maximum(values: Array, highest: Array, drop: Array, columns: int) -> None:
    best = np.maximum.accumulate(values.reshape(-1, columns).astype(np.int64), axis=1).ravel()
    put(highest, ints(best))
    put(drop, ints(best - values))


def _chained(values: Array, out: Array, sums: Array, ready: Array) -> None:
    total = _running(ints(values))
    put(out, total)
    put(sums, total[len(values) // len(sums) - 1 :: len(values) // len(sums)])
    ready[:] = 1


def _multiples(values: Array, out: Array, count: Array, divisor: int, n: int) -> None:
    kept = [x for x in ints(values[:n]) if x % divisor == 0]
    put(out, kept)
    count[0] = len(kept)


def _below(values: Array, out: Array, count: Array, limit: int, n: int) -> None:
    kept = values[:n][values[:n] < limit]
    out[: len(kept)] = kept
    count[0] = len(kept)


def _three_ways(values: Array, out: Array, bounds: Array, pivot: int, n: int) -> None:
    out[:] = sorted(ints(values), key=lambda x: (x > pivot) - (x < pivot))
    bounds[:] = np.count_nonzero(values < pivot), np.count_nonzero(values <= pivot)


def _to_the_end(following: Array, rank: Array, n: int) -> None:
    for i in range(n):
        node = i
        while (node := int(following[node])) >= 0:
            rank[i] += 1


def _lists(seed: int, n: int, ends: int) -> Array:
    """Links of `ends` lists over n nodes in random order."""
    order = np.random.default_rng(seed).permutation(n)
    links = np.full(n, -1, dtype=np.int32)
    for part in np.array_split(order, ends):
        links[part[:-1]] = part[1:]
    return links


def _flags(seed: int, n: int) -> Array:
    """Ones in about a seventh of the places."""
    return (draw(seed, n, 0, 7) == 0).astype(np.uint8)


_row = functools.partial(kernel, "scans")

KERNELS: tuple[Kernel, ...] = (
    _row("scan_hillis_steele", _inclusive,
        launch(1, 4, i32(1, 2, 3, 4), junk(4), 4, shared=32),
        launch(1, 50, mixed(1, 50), junk(50), 50, shared=400)),
    _row("scan_blelloch", _exclusive,
        launch(1, 2, i32(5, 6, 7, 8), junk(4), 4),
        launch(1, 64, draw(2, 128), junk(128), 128)),
    _row("scan_shuffle", _inclusive,
        launch(1, 32, draw(3, 32, -9, 10), junk(32)),
        launch(1, 96, mixed(4, 96), junk(96))),
    _row("scan_segmented", _segmented,
        launch(1, 4, i32(1, 2, 3, 4), np.array([1, 0, 1, 0], np.uint8), junk(4), 4),
        launch(1, 64, mixed(5, 60), _flags(6, 60), junk(60), 60),
        launch(1, 40, draw(7, 40), zeros(40, np.uint8), junk(40), 40)),
    _row("scan_maximum", _maximum,
        launch(1, (32, 1, 1), i32(2, -1, 5), junk(3), junk(3), 3),
        launch(2, (32, 2, 1), mixed(8, 160), junk(160), junk(160), 40)),
    _row("scan_chained", _chained,
        launch(1, 2, u32(1, 2), junk(2, np.uint32), junk(1, np.uint32), zeros(1)),
        launch(4, 16, draw(9, 64, dtype=np.uint32), junk(64, np.uint32), junk(4, np.uint32), zeros(4))),
    _row("compact_scan", _multiples,
        launch(1, 4, i32(3, 4, 6, 9), junk(4), junk(1), 3, 4),
        launch(1, 64, draw(10, 60, -99, 100), junk(60), junk(1), -4, 60)),
    _row("compact_ballot", _below,
        launch(1, 32, np.array([5, 1, 9], np.uint16), junk(3, np.uint16), junk(1), 6, 3),
        launch(1, 64, draw(11, 150, dtype=np.uint16), junk(150, np.uint16), junk(1), 30000, 150)),
    _row("partition_stable", _three_ways,
        launch(1, 3, i32(5, 1, 3), junk(3), junk(2), 3, 3),
        launch(1, 32, draw(12, 32, -4, 5), junk(32), junk(2), 1, 32)),
    _row("list_ranking", _to_the_end,
        launch(1, 3, i32(2, -1, 1), zeros(3), 3),
        launch(1, 48, _lists(13, 48, 5), zeros(48), 48)),
)  # fmt: skip
