"""Reductions: trees, shuffles, atomics, votes, histograms."""

from __future__ import annotations

import functools
import math

import numpy as np

from kernels.table import (
    Array,
    Kernel,
    draw,
    i32,
    ints,
    junk,
    kernel,
    launch,
    mixed,
    put,
    rows_of,
    u8,
    u64,
    zeros,
)


def _block_sums(values: Array, out: Array, n: int) -> None:
    width = -(-n // len(out))
    put(out, [sum(ints(values[k : min(k + width, n)])) for k in range(0, n, width)])


def _block_products(values: Array, out: Array, n: int) -> None:
    width = -(-n // len(out))
    put(out, [math.prod(ints(values[k : min(k + width, n)])) for k in range(0, n, width)])


def _sum_and_maximum(values: Array, out: Array, n: int) -> None:
    put(out, [sum(ints(values[:n])), max(ints(values[:n]))])


def _add_sum(values: Array, out: Array, n: int) -> None:
    put(out, [int(out[0]) + sum(ints(values[:n]))])


def _sum_and_parity(values: Array, out: Array) -> None:
    put(out, [sum(ints(values)), int(np.bitwise_xor.reduce(values))])


def _two_groups(values: Array, out: Array, split: int) -> None:
    low, high = values[:split], ints(values[split:])
    out[:split] = np.sum(low, dtype=np.uint32) ^ np.bitwise_xor.reduce(low)
    out[split:] = max(high) - min(high)


def _argmax(values: Array, value: Array, index: Array, n: int) -> None:
    index[0] = np.argmax(values[:n])
    value[0] = values[index[0]]


def _count_positive(values: Array, count: Array, seen: Array, n: int) -> None:
    seen[: np.count_nonzero(values[:n] > 0)] += 1
    count[0] += np.count_nonzero(values[:n] > 0)


def _dot(a: Array, b: Array, out: Array, n: int) -> None:
    put(out, [int(out[0]) + sum(x * y for x, y in zip(ints(a[:n]), ints(b[:n]), strict=True))])


def _partial_sums(values: Array, partial: Array, finished: Array, out: Array, n: int) -> None:
    _block_sums(values, partial, n)
    put(out, [sum(ints(values[:n]))])


def _mean_and_variance(samples: Array, mean: Array, variance: Array, columns: int) -> None:
    for row, values in enumerate(rows_of(samples, columns)):
        total = sum(values)
        mean[row] = int(math.copysign(abs(total) // columns, total))
        variance[row] = (sum(x * x for x in values) - total * total // columns) // columns


def _high_nibbles(data: Array, bins: Array, n: int) -> None:
    bins += np.bincount(data[:n] // 16, minlength=16).astype(bins.dtype)


def _bincount(values: Array, bins: Array) -> None:
    bins += np.bincount(values, minlength=len(bins)).astype(bins.dtype)


def _votes(table: Array, is_sorted: Array, zero: Array, count: Array) -> None:
    for row, values in enumerate(rows_of(table, len(table) // len(count))):
        is_sorted[row] = values == sorted(values)
        zero[row] = 0 in values
        count[row] = values.count(0)


def _two_tables() -> Array:
    rising = np.sort(draw(31, 64, 1, 99))
    falling = np.where(np.arange(64) % 9 == 4, 0, 64 - np.arange(64))
    return np.concatenate([rising, falling]).astype(np.int32)


_row = functools.partial(kernel, "reductions")

KERNELS: tuple[Kernel, ...] = (
    _row("reduce_interleaved", _block_sums,
        launch(1, 4, i32(1, 2, 3, 4), junk(1), 4),
        launch(2, 64, mixed(1, 128), junk(2), 128),
        launch(1, 128, draw(2, 100), junk(1), 100)),
    _row("reduce_sequential", _block_products,
        launch(1, 2, draw(3, 3, 1, 9, np.uint32), junk(1, np.uint32), 3, shared=8),
        launch(2, 16, draw(4, 64, dtype=np.uint32) | 1, junk(2, np.uint32), 64, shared=64)),
    _row("reduce_template", _sum_and_maximum,
        launch(1, 64, i32(-5, 7), junk(2), 2), launch(1, 64, draw(5, 61), junk(2), 61)),
    _row("reduce_shuffle", _add_sum,
        launch(1, 32, i32(3, -4, 9), zeros(1), 3), launch(2, 64, draw(6, 150), i32(7), 150)),
    _row("reduce_wide", _sum_and_parity, launch(1, 32, draw(7, 32, dtype=np.uint64), junk(2, np.uint64))),
    _row("reduce_intrinsics", _two_groups,
        launch(1, 32, draw(8, 32, dtype=np.uint32), junk(32, np.uint32), 12),
        launch(1, 32, mixed(9, 32, np.uint32), junk(32, np.uint32), 31),
        architecture="compute_80"),
    _row("argmax_block", _argmax,
        launch(1, 4, i32(3, 9, 9), junk(1), junk(1), 3),
        launch(1, 64, draw(10, 100, -50, 51), junk(1), junk(1), 100),
        launch(1, 16, draw(11, 40, -(2**31), -(2**31) + 3), junk(1), junk(1), 40)),
    _row("count_aggregated", _count_positive,
        launch(1, 4, i32(1, -1, 2, 0), zeros(1), zeros(4), 4),
        launch(2, 48, draw(12, 90), zeros(1), zeros(90), 90)),
    _row("dot_wide", _dot,
        launch(1, 2, i32(2**31 - 1, 3), i32(2**31 - 1, 4), u64(0), 2),
        launch(2, 16, draw(13, 50), draw(14, 50), u64(2**64 - 9), 50)),
    _row("last_block_sum", _partial_sums,
        launch(1, 2, i32(5, 6), junk(1), zeros(1, np.uint32), junk(1), 2),
        launch(4, 32, draw(15, 127), junk(4), zeros(1, np.uint32), junk(1), 127)),
    _row("mean_variance", _mean_and_variance,
        launch(1, 32, draw(16, 5, dtype=np.int16), junk(1), junk(1, np.int64), 5),
        launch(3, 32, draw(17, 150, dtype=np.int16), junk(3), junk(3, np.int64), 50)),
    _row("histogram_private", _high_nibbles,
        launch(1, 4, u8([0, 255, 16, 17]), zeros(16, np.uint32), 4),
        launch(2, 24, draw(18, 200, dtype=np.uint8), draw(19, 16, dtype=np.uint32), 200)),
    _row("histogram_match", _bincount,
        launch(1, 32, draw(20, 32, 0, 5), zeros(5)), launch(2, 64, draw(21, 128, 0, 20), draw(22, 20))),
    _row("vote_all", _votes, launch(2, 64, _two_tables(), junk(2), junk(2), junk(2))),
)  # fmt: skip
