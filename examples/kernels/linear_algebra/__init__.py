"""Matrices, dense and sparse, over the integers, modulo a prime and over bits."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from kernels.table import Array, Kernel, draw, i32, junk, kernel, launch, mixed, put, rows_of, u32


def _product(a: Array, b: Array, rows: int, inner: int) -> list[int]:
    """The entries of a product of matrices, exactly."""
    left = a.reshape(rows, inner).astype(object)
    right = b.reshape(inner, -1).astype(object)
    return [int(x) for x in left.dot(right).ravel()]


def _matmul(a: Array, b: Array, c: Array, rows: int, inner: int, columns: int) -> None:
    put(c, _product(a, b, rows, inner))


def _matmul_twelve(a: Array, b: Array, c: Array) -> None:
    put(c, _product(a, b, 12, 12))


def _matmul_bytes(a: Array, b_transposed: Array, c: Array, words: int) -> None:
    left, right = a.view(np.int8), b_transposed.view(np.int8)
    put(c, _product(left, right.reshape(-1, 4 * words).T.copy(), len(left) // (4 * words), 4 * words))


def _transpose(out: Array, source: Array, width: int, height: int) -> None:
    out[:] = source.reshape(height, width).T.ravel()


def _matvec(matrix: Array, vector: Array, out: Array, rows: int, columns: int) -> None:
    put(out, _product(matrix, vector, rows, columns))


def _csr(num_rows: int, ptr: Array, indices: Array, data: Array, x: Array, y: Array) -> None:
    for row in range(num_rows):
        part = range(ptr[row], ptr[row + 1])
        put(y, [int(y[row]) + sum(int(data[k]) * int(x[indices[k]]) for k in part)], at=row)


def _coo(entries: Array, n: int, x: Array, y: Array) -> None:
    for row, column, value in rows_of(entries, 3)[:n]:
        put(y, [int(y[row]) + value * int(x[column])], at=row)


def _determinant(rows: list[list[int]]) -> int:
    """By expansion along the first row, with minors remembered."""
    n = len(rows)

    @functools.cache
    def minor(row: int, columns: tuple[int, ...]) -> int:
        if row == n:
            return 1
        rest = [columns[:k] + columns[k + 1 :] for k in range(len(columns))]
        return sum((-1) ** k * rows[row][c] * minor(row + 1, rest[k]) for k, c in enumerate(columns))

    return minor(0, tuple(range(n)))


def _determinants_mod(matrix: Array, out: Array, n: int, p: int) -> None:
    put(out, [_determinant(rows_of(part, n)) % p for part in matrix.reshape(len(out), -1)])


def _determinants(matrices: Array, out: Array, count: int) -> None:
    put(out, [_determinant(rows_of(part, 4)) for part in matrices.reshape(-1, 16)[:count]])


def _power(matrix: Array, out: Array, exponent: int, m: int) -> None:
    n = math.isqrt(len(matrix))
    base = matrix.reshape(n, n).astype(object)
    result = np.array([[int(i == j) for j in range(n)] for i in range(n)], dtype=object)
    for bit in f"{exponent:b}":
        result = result.dot(result) % m
        if bit == "1":
            result = result.dot(base) % m
    put(out, [int(x) % m for x in result.ravel()])


def _rank(rows: Array, rank: Array) -> None:
    """The size of a basis in which every vector has a highest bit of its own."""
    for block, words in enumerate(rows_of(rows, 32)):
        basis: list[int] = []
        for word in words:
            for vector in basis:
                word = min(word, word ^ vector)
            if word:
                basis.append(word)
        rank[block] = len(basis)


def _solve(lower: Array, b: Array, x: Array, n: int, p: int) -> None:
    rows, solution = rows_of(lower, n), []
    for i, row in enumerate(rows):
        known = sum(row[k] * solution[k] for k in range(i))
        solution.append((int(b[i]) - known) * pow(row[i], -1, p) % p)
    put(x, solution)


def _sparse(seed: int, rows: int, columns: int) -> tuple[Array, Array, Array]:
    """Offsets, columns and values of a random matrix with empty rows."""
    dense = draw(seed, rows * columns, -99, 100) * (draw(seed + 1, rows * columns, 0, 4) == 0)
    table = dense.reshape(rows, columns) * (draw(seed + 2, rows, 0, 5) > 0)[:, None]
    offsets = [0, *itertools.accumulate(np.count_nonzero(table, axis=1).tolist())]
    at = np.nonzero(table)
    return i32(*offsets), at[1].astype(np.int32), table[at].astype(np.int32)


def _triples(seed: int, rows: int, columns: int) -> Array:
    offsets, at, values = _sparse(seed, rows, columns)
    row_of = np.repeat(np.arange(rows), np.diff(offsets))
    return np.column_stack([row_of, at, values]).astype(np.int32).ravel()


_SINGULAR = i32(
    1,
    2,
    3,
    4,
    2,
    4,
    6,
    8,
    5,
    6,
    7,
    8,
    1,
    0,
    0,
    1,
    *[0] * 16,
    *range(16),
    *(np.eye(4, dtype=int)[::-1].ravel()),
)
_TRIPLES = _triples(14, 12, 9)
_LOW_RANK = draw(21, 32, dtype=np.uint32) & 0x0FF00FF0

_row = functools.partial(kernel, "linear_algebra")

KERNELS: tuple[Kernel, ...] = (
    _row("matmul_tiled", _matmul,
        launch(1, (8, 8, 1), i32(1, 2, 3, 4), i32(5, 6, 7, 8), junk(4), 2, 2, 2),
        launch((2, 2, 1), (8, 8, 1), mixed(1, 99), draw(2, 110), junk(90), 9, 11, 10)),
    _row("matmul_registers", _matmul_twelve,
        launch(1, 36, draw(3, 144, dtype=np.int16), draw(4, 144, dtype=np.int16), junk(144))),
    _row("matmul_int8", _matmul_bytes,
        launch(1, (2, 2, 1), draw(5, 2), draw(6, 2), junk(4), 1),
        launch(2, (4, 8, 1), draw(7, 24), draw(8, 24), junk(64), 3)),
    _row("transpose_tiled", _transpose,
        launch(1, (16, 4, 1), junk(6), i32(*range(6)), 3, 2),
        launch((2, 2, 1), (16, 4, 1), junk(357), draw(9, 357), 21, 17)),
    _row("matvec_warp", _matvec,
        launch(1, 32, i32(1, 2, 3, 4), i32(5, 6), junk(2, np.int64), 2, 2, shared=8),
        launch(1, 64, draw(10, 200), draw(11, 40), junk(5, np.int64), 5, 40, shared=160)),
    _row("spmv_csr", _csr,
        launch(1, 2, 2, i32(0, 1, 3), i32(1, 0, 1), i32(5, 6, 7), i32(1, 2), i32(0, 0)),
        launch(2, 8, 12, *_sparse(12, 12, 10), draw(13, 10, -999, 1000), draw(14, 12))),
    _row("spmv_coo", _coo,
        launch(1, 32, i32(0, 1, 5, 1, 0, 6, 1, 1, 7), 3, i32(1, 2), i32(0, 0)),
        launch(1, 32, _TRIPLES, len(_TRIPLES) // 3, draw(15, 9, -999, 1000), draw(16, 12))),
    _row("determinant_mod", _determinants_mod,
        launch(1, 2, i32(1, 2, 3, 4), junk(1, np.uint32), 2, 1009),
        launch(1, 5, draw(17, 25, 0, 3), junk(1, np.uint32), 5, 65521),
        launch(2, 3, i32(0, 1, 2, 1, 0, 3, 4, -3, 8, 1, 2, 3, 2, 4, 6, 7, 7, 7), junk(2, np.uint32), 3, 97)),
    _row("bareiss", _determinants,
        launch(1, 1, draw(18, 16, -9, 10), junk(1, np.int64), 1),
        launch(2, 4, np.concatenate([draw(19, 48, -500, 501), _SINGULAR]), junk(7, np.int64), 7)),
    _row("matrix_power", _power,
        launch(1, (2, 2, 1), u32(1, 1, 1, 0), junk(4, np.uint32), 10, 1000),
        launch(1, (4, 4, 1), draw(20, 16, dtype=np.uint32), junk(16, np.uint32), 37, 2**31 - 1)),
    _row("rank_gf2", _rank,
        launch(1, 32, _LOW_RANK, junk(1)), launch(2, 32, draw(22, 64, dtype=np.uint32), junk(2))),
    _row("triangular_solve", _solve,
        launch(1, 2, u32(2, 0, 1, 1), u32(4, 5), junk(2, np.uint32), 2, 97),
        launch(1, 10, draw(23, 100, 1, 1009, np.uint32), draw(24, 10, dtype=np.uint32), junk(10, np.uint32),
            10, 1009)),
)  # fmt: skip
