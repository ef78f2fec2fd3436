"""Locks, queues, atomics of every kind, groups within warps, grids of three dimensions."""

from __future__ import annotations

import functools
import itertools
import math
import operator

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
    u8,
    u32,
    u64,
    zeros,
)


def _ticket_lock(lock: Array, account: Array, deposits: Array) -> None:
    amounts = ints(deposits)
    lock += np.uint32(len(amounts))
    before = ints(account)
    put(account, [before[0] + sum(amounts), before[1] + len(amounts), max(before[2], *amounts)])


def _spin_lock(lock: Array, polynomial: Array, terms: Array, p: int) -> None:
    total, product = ints(polynomial)
    put(polynomial, [(total + sum(ints(terms))) % p, product * math.prod(ints(terms)) % p])


def _work(jobs: Array, n: int, results: Array, following: Array) -> None:
    for job, x in enumerate(ints(jobs[:n])):
        results[job] = 0
        while x > 1:
            x = x // 3 if x % 3 == 0 else x - 1
            results[job] += 1
    following[0] = n


def _ring(items: Array, n: int, total: Array, consumed: Array) -> None:
    put(total, [int(total[0]) + sum(k * item for k, item in enumerate(ints(items[:n]), 1))])
    consumed[0] = n


def _stacks(values: Array, n: int, buckets: int, length: Array, total: Array) -> None:
    parts = [[x for x in ints(values[:n]) if x % 2**32 % buckets == b] for b in range(buckets)]
    put(length, [len(part) for part in parts])
    put(total, [sum(part) for part in parts])


def _signed(word: int, width: int) -> int:
    return word - (word >> width - 1 << width)


def _atomics(values: Array, words: Array, wide: Array) -> None:
    xs, w, d = ints(values), ints(words), ints(wide)
    narrow = [
        (w[0] + len(xs)) % 7,
        (w[1] - len(xs)) % 10,
        functools.reduce(operator.and_, (x | 0xFF00FF00 for x in xs), w[2]),
        functools.reduce(operator.or_, (x & 0x0F0F0F0F for x in xs), w[3]),
        functools.reduce(operator.xor, xs, w[4]),
        w[5] - sum(xs),
        min(w[6], *xs),
        max(_signed(x, 32) for x in (w[7], *xs)),
    ]
    put(words, narrow)
    least = min(_signed(d[1], 64), *(3 * _signed(x, 32) for x in xs))
    parity = functools.reduce(operator.xor, (x << 20 for x in xs), d[2])
    put(wide, [max(d[0], *(x * x for x in xs)), least, parity, d[3] + sum(xs) * 0x100000001])


def _by_cas(values: Array, product: Array, sums: Array, pair: Array, p: int) -> None:
    xs = ints(values)
    put(product, [int(product[0]) * math.prod(xs) % p])
    lanes = list(int(sums[0]).to_bytes(4, "little"))
    for i, x in enumerate(xs):
        lanes[i % 4] = min(lanes[i % 4] + x % 16, 255)
    sums[0] = int.from_bytes(bytes(lanes), "little")
    candidates = [int(pair[0]), *(i << 32 | x for i, x in enumerate(xs))]
    pair[0] = min(candidates, key=lambda word: word % 2**32)


def _leaders(keys: Array, counters: Array, places: Array, n: int) -> None:
    for i, key in enumerate(ints(keys[:n])):
        if key != 255:
            places[i] = counters[key]
            counters[key] += 1
    counters[4] += len({*ints(keys[:n]), *[255] * (32 - n)}) == 1


def _rows_of_eight(values: Array, first: Array, rotated: Array, product: Array, swapped: Array) -> None:
    table = values.reshape(-1, 8)
    first[:] = np.repeat(table[:, 0], 8)
    rotated[:] = np.roll(table, -1, axis=1).ravel()
    put(product, [math.prod(row[: k + 1]) for row in table.tolist() for k in range(8)])
    put(swapped, [(int(values[i ^ 1]) << 33) | i ^ 1 for i in range(len(values))])


def _positions(shape: Array, linear: Array, block_sums: Array, plane_counts: Array) -> None:
    grid, block = ints(shape[:3]), ints(shape[3:])
    at = itertools.product(*map(range, reversed(grid)), *map(range, reversed(block)))
    planes = [0] * (grid[2] * block[2])
    for number, (bz, by, bx, tz, ty, tx) in enumerate(at):
        z, y, x = (b * size + t for b, size, t in zip((bz, by, bx), block[::-1], (tz, ty, tx), strict=True))
        linear[number] = 10000 * z + 100 * y + x
        planes[z] += 1
    size = math.prod(block)
    put(block_sums, [sum(range(b * size, (b + 1) * size)) for b in range(math.prod(grid))])
    plane_counts += i32(*planes)


_START = u32(3, 4, 2**32 - 1, 0, 99, 5, 2**31, 7)
_WIDE = u64(1, 2**40, 0, 2**63)

_row = functools.partial(kernel, "concurrency")

KERNELS: tuple[Kernel, ...] = (
    _row("ticket_lock", _ticket_lock,
        launch(2, 1, zeros(2, np.uint32), i32(100, 0, 0), i32(5, 7)),
        launch(6, 2, u32(4, 4), i32(-9, 3, 50), draw(1, 6))),
    _row("spin_lock", _spin_lock,
        launch(1, 2, zeros(1), u32(0, 1), u32(5, 7), 97),
        launch(2, 8, zeros(1), u32(3, 4), draw(2, 16, 1, 2**31, np.uint32), 65521)),
    _row("work_queue", _work,
        launch(1, 2, u32(9, 5, 1), 3, junk(3, np.uint32), zeros(1)),
        launch(2, 16, mixed(3, 50, np.uint32), 50, junk(50, np.uint32), zeros(1))),
    _row("ring_buffer", _ring,
        launch(1, 4, i32(3, 4, 5), 3, u64(0), junk(1)),
        launch(1, 32, draw(4, 90), 90, u64(7), junk(1))),
    _row("linked_stack", _stacks,
        launch(1, 2, i32(4, 5, 6), 3, 2, junk(2), junk(2)),
        launch(1, 32, draw(5, 60), 60, 7, junk(7), junk(7))),
    _row("atomic_wrap", _atomics,
        launch(1, 2, u32(5, 2**31), _START, _WIDE), launch(2, 20, mixed(6, 40, np.uint32), _START, _WIDE)),
    _row("atomic_by_cas", _by_cas,
        launch(1, 2, u32(5, 9), u32(1), u32(0), u64(2**64 - 1), 97),
        launch(2, 24, mixed(7, 48, np.uint32) * 64 + np.arange(1, 49, dtype=np.uint32), u32(2),
            u32(0x0000F000),
            u64(2**64 - 1), 1000003)),
    _row("elect_leader", _leaders,
        launch(1, 32, u8([1] * 32), zeros(5), junk(32), 32),
        launch(1, 32, u8([0, 3, 3, 255, 1, 0, 2, 255] * 3), i32(10, 20, 30, 40, 50), junk(24), 24)),
    _row("broadcast_rows", _rows_of_eight,
        launch(1, 32, draw(8, 32), junk(32), junk(32), junk(32), junk(32, np.int64))),
    _row("grid_positions", _positions,
        launch((1, 1, 1), (2, 1, 2), i32(1, 1, 1, 2, 1, 2), junk(4), junk(1), zeros(2)),
        launch((2, 3, 2), (3, 2, 2), i32(2, 3, 2, 3, 2, 2), junk(144), junk(12), i32(1, 2, 3, 4))),
)  # fmt: skip
