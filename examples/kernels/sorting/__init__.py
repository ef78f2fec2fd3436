"""Sorting networks, radix, merge and rank sorts, sorts of one thread, selection."""

from __future__ import annotations

import functools

import numpy as np

from kernels.table import Array, Kernel, draw, i32, ints, junk, kernel, launch, mixed, put, u8, u32


def _sort(data: Array, n: int | None = None) -> None:
    data.sort()


def _sort_rows(data: Array, width: int) -> None:
    data[:] = np.sort(data.reshape(-1, width), axis=1).ravel()


def _sort_warps(keys: Array) -> None:
    _sort_rows(keys, 32)


def _sort_eights(rows: Array, count: int) -> None:
    _sort_rows(rows[: 8 * count], 8)


def _odd_even(data: Array, passes: Array, n: int) -> None:
    """A pass moves a key at most two places; the network is followed on a list to count its passes."""
    keys, wanted = ints(data), sorted(ints(data))
    count = 1
    while keys != wanted:
        for parity in (0, 1):
            for i in range(parity, n - 1, 2):
                keys[i : i + 2] = sorted(keys[i : i + 2])
        count += 1
    data.sort()
    passes[0] = count


def _sort_pairs(keys: Array, payload: Array, bits: int) -> None:
    order = np.argsort(keys % (1 << bits), kind="stable")
    keys[:], payload[:] = keys[order], payload[order]


def _sorted_copy(values: Array, out: Array, n: int) -> None:
    out[:n] = np.sort(values[:n])


def _merge(a: Array, na: int, b: Array, nb: int, out: Array, part: int) -> None:
    out[: na + nb] = np.sort(np.concatenate([a[:na], b[:nb]]))


def _rank(keys: Array, out: Array, permutation: Array, n: int) -> None:
    permutation[:n] = np.argsort(keys[:n], kind="stable")
    out[:n] = np.sort(keys[:n])


def _top(table: Array, out: Array, columns: int) -> None:
    rows = np.sort(table.reshape(-1, columns), axis=1)[:, ::-1][:, :4]
    put(out, ints(rows.ravel()))


def _kth(keys: Array, out: Array, k: int, n: int) -> None:
    out[0] = np.sort(keys[:n])[k]


_row = functools.partial(kernel, "sorting")

KERNELS: tuple[Kernel, ...] = (
    _row("bitonic_sort", _sort,
        launch(1, 4, i32(3, 1, 4, 2), 4, shared=16),
        launch(1, 64, mixed(1, 64), 64, shared=256)),
    _row("bitonic_warp", _sort_warps,
        launch(1, 32, draw(2, 32, dtype=np.uint32)), launch(2, 32, mixed(3, 64, np.uint32))),
    _row("odd_even_sort", _odd_even,
        launch(1, 2, i32(2, 1, 0), junk(1), 3), launch(1, 8, draw(4, 15, -9, 10), junk(1), 15)),
    _row("radix_sort_bits", _sort_pairs,
        launch(1, 4, u32(3, 1, 2, 1), u32(10, 11, 12, 13), 2),
        launch(1, 64, draw(5, 64, 0, 256, np.uint32), u32(*range(64)), 8),
        launch(1, 32, draw(6, 32, 0, 99, np.uint32), u32(*range(32)), 4)),
    _row("radix_sort_digits", _sorted_copy, launch(1, 32, mixed(7, 32, np.int64), junk(32, np.int64), 32)),
    _row("merge_sort", _sort,
        launch(1, 3, i32(3, 1, 2), 3),
        launch(1, 64, draw(8, 64, -20, 20), 64),
        launch(1, 45, mixed(9, 45), 45)),
    _row("merge_path", _merge,
        launch(1, 2, i32(1, 4), 2, i32(2, 3), 2, junk(4), 2),
        launch(2, 8, np.sort(draw(10, 40, -50, 50)), 40, np.sort(draw(11, 25, -50, 50)), 25, junk(65), 5)),
    _row("rank_sort", _rank,
        launch(1, 4, draw(12, 3, dtype=np.int16), junk(3, np.int16), junk(3), 3),
        launch(3, 16, draw(13, 45, -9, 10, np.int16), junk(45, np.int16), junk(45), 45)),
    _row("insertion_sort_rows", _sort_eights,
        launch(1, 1, i32(5, 3, 8, 1, 9, 2, 2, 0), 1), launch(2, 4, mixed(14, 56), 7)),
    _row("heap_sort", _sort_rows, launch(1, 2, i32(3, 1, 2, 6, 5, 4), 3), launch(1, 4, mixed(15, 44), 11)),
    _row("quick_sort_stack", _sort_rows,
        launch(1, 1, u8([9, 3, 5]), 3), launch(2, 2, draw(16, 80, dtype=np.uint8), 20)),
    _row("shell_sort", _sort_rows, launch(1, 2, i32(4, 3, 2, 1), 4), launch(2, 8, mixed(17, 80), 40)),
    _row("counting_sort", _sorted_copy,
        launch(1, 26, u8(b"cuda").view(np.int8), junk(4, np.int8), 4),
        launch(1, 32, draw(18, 90, 97, 123, np.int8), junk(90, np.int8), 90)),
    _row("top_k", _top,
        launch(1, 2, i32(1, 5, 3, 2, 4, 9, 9, -1, 0, 3), junk(8), 5),
        launch(1, 8, draw(19, 96), junk(32), 12)),
    _row("select_kth", _kth,
        launch(1, 4, u32(7, 3, 9), junk(1, np.uint32), 1, 3),
        launch(1, 64, mixed(20, 60, np.uint32), junk(1, np.uint32), 17, 60)),
)  # fmt: skip
