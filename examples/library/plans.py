"""How routines are launched: from operands to a grid, a thread block and arguments.

A plan is given int32 arrays whose shapes fit, and the most threads of a block that the kernel was compiled
for. Results begin as what the kernel asks for: zeros, or the identity of what it folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Dim3 = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Plan:
    """A launch, and where its result is.

    Attributes:
        arguments: in the order of the parameters: int32 arrays of one dimension, and numbers.
        result: which argument holds the result.
        shape: of the result; of one that `count` shortens, the largest.
        count: which argument says how many elements the result has, where that is known only afterwards.
    """

    grid: Dim3
    block: Dim3
    arguments: tuple[Array | int, ...]
    result: int
    shape: tuple[int, ...]
    count: int | None = None


Planner: TypeAlias = Callable[[Sequence[Array], int], Plan]


def elementwise(operands: Sequence[Array], most: int) -> Plan:
    """A thread an element; operands without dimensions stand for as many equal elements."""
    shape = np.broadcast_shapes(*(one.shape for one in operands))
    n = int(np.prod(shape))
    whole = [_flat(np.broadcast_to(one, shape)) for one in operands]
    return Plan(*_line(n, most), (*whole, _zeros(n), n), len(operands), shape)


def folded(identity: int) -> Planner:
    """A thread an element, all of which change one number, which begins as `identity`."""

    def plan(operands: Sequence[Array], most: int) -> Plan:
        n = operands[0].size
        start = np.full(1, identity, np.int32)
        return Plan(*_line(n, most), (*map(_flat, operands), start, n), len(operands), ())

    return plan


def serial_fold(operands: Sequence[Array], most: int) -> Plan:
    """One thread that makes one number of a vector."""
    (a,) = operands
    return Plan(*_line(1, most), (_flat(a), _zeros(1), a.size), 1, ())


def serial_scan(operands: Sequence[Array], most: int) -> Plan:
    """One thread that makes a vector of a vector of the same length."""
    (a,) = operands
    return Plan(*_line(1, most), (_flat(a), _zeros(a.size), a.size), 1, (a.size,))


def shortened(operands: Sequence[Array], most: int) -> Plan:
    """One thread that keeps some elements of a vector, and counts them."""
    n, at = operands[0].size, len(operands)
    arguments = (*map(_flat, operands), _zeros(n), _zeros(1), n)
    return Plan(*_line(1, most), arguments, at, (n,), count=at + 1)


def neighbours(operands: Sequence[Array], most: int) -> Plan:
    """A thread for every two neighbours of a vector of two elements or more."""
    (a,) = operands
    n = a.size - 1
    return Plan(*_line(n, most), (_flat(a), _zeros(n), a.size), 1, (n,))


def in_place(operands: Sequence[Array], most: int) -> Plan:
    """One thread block that orders a vector where it is."""
    (a,) = operands
    return Plan((1, 1, 1), (min(a.size, most), 1, 1), (_flat(a), a.size), 0, (a.size,))


def beside(operands: Sequence[Array], most: int) -> Plan:
    """One thread block that orders a vector, and a second one with it, which is the result."""
    (a,) = operands
    arguments = (_flat(a), _zeros(a.size), a.size)
    return Plan((1, 1, 1), (min(a.size, most), 1, 1), arguments, 1, (a.size,))


def reversed_line(operands: Sequence[Array], most: int) -> Plan:
    """A thread an element of a vector."""
    (a,) = operands
    return Plan(*_line(a.size, most), (_flat(a), _zeros(a.size), a.size), 1, (a.size,))


def gathered(operands: Sequence[Array], most: int) -> Plan:
    """Rows (of a vector: elements) of the first operand, by the numbers in the second."""
    a, index = operands
    width = int(np.prod(a.shape[1:]))
    grid, block = _plane(width, index.size, most)
    arguments = (_flat(a), _flat(index), _zeros(index.size * width), len(a), width, index.size)
    return Plan(grid, block, arguments, 2, (*index.shape, *a.shape[1:]))


def counted(operands: Sequence[Array], most: int) -> Plan:
    """Numbers from the first operand on, as many as the second, a number as well, says."""
    start, count = (int(one) for one in operands)
    return Plan(*_line(count, most), (_zeros(count), start, count), 0, (count,))


def joined(operands: Sequence[Array], most: int) -> Plan:
    """Two vectors, or two matrices of the same width, one after the other."""
    a, b = operands
    arguments = (_flat(a), _flat(b), _zeros(a.size + b.size), a.size, b.size)
    return Plan(*_line(max(a.size, b.size), most), arguments, 2, (len(a) + len(b), *a.shape[1:]))


def binned(operands: Sequence[Array], most: int) -> Plan:
    """Bins for the elements of the first operand, as many as the second, a number, says."""
    a, bins = operands[0], int(operands[1])
    return Plan(*_line(a.size, most), (_flat(a), _zeros(bins), a.size, bins), 1, (bins,))


def on_the_diagonal(operands: Sequence[Array], most: int) -> Plan:
    """A thread an element of the diagonal of a matrix."""
    (a,) = operands
    n = min(a.shape)
    return Plan(*_line(n, most), (_flat(a), _zeros(n), a.shape[1], n), 1, (n,))


def transposed(operands: Sequence[Array], most: int) -> Plan:
    """A thread an element of a matrix."""
    (a,) = operands
    rows, columns = a.shape
    return Plan(*_plane(columns, rows, most), (_flat(a), _zeros(a.size), rows, columns), 1, (columns, rows))


def each_with_each(operands: Sequence[Array], most: int) -> Plan:
    """A thread for each pair of an element of the one vector and one of the other."""
    a, b = operands
    arguments = (_flat(a), _flat(b), _zeros(a.size * b.size), a.size, b.size)
    return Plan(*_plane(b.size, a.size, most), arguments, 2, (a.size, b.size))


def matrix_by_vector(operands: Sequence[Array], most: int) -> Plan:
    """A thread a row."""
    a, b = operands
    rows, columns = a.shape
    return Plan(*_line(rows, most), (_flat(a), _flat(b), _zeros(rows), rows, columns), 2, (rows,))


def vector_by_matrix(operands: Sequence[Array], most: int) -> Plan:
    """A thread a column."""
    a, b = operands
    rows, columns = b.shape
    return Plan(*_line(columns, most), (_flat(a), _flat(b), _zeros(columns), rows, columns), 2, (columns,))


def matrix_by_matrix(operands: Sequence[Array], most: int) -> Plan:
    """A thread an element of the product."""
    a, b = operands
    (rows, inner), columns = a.shape, b.shape[1]
    arguments = (_flat(a), _flat(b), _zeros(rows * columns), rows, inner, columns)
    return Plan(*_plane(columns, rows, most), arguments, 2, (rows, columns))


def along_rows(operands: Sequence[Array], most: int) -> Plan:
    """A thread a row of a matrix."""
    (a,) = operands
    rows, columns = a.shape
    return Plan(*_line(rows, most), (_flat(a), _zeros(rows), rows, columns), 1, (rows,))


def along_columns(operands: Sequence[Array], most: int) -> Plan:
    """A thread a column of a matrix."""
    (a,) = operands
    rows, columns = a.shape
    return Plan(*_line(columns, most), (_flat(a), _zeros(columns), rows, columns), 1, (columns,))


def _flat(a: Array) -> Array:
    return np.array(a, np.int32, order="C").reshape(-1)


def _zeros(n: int) -> Array:
    return np.zeros(n, np.int32)


def _line(threads: int, most: int) -> tuple[Dim3, Dim3]:
    """Grid and block for so many threads along x."""
    block = min(threads, most)
    return (-(-threads // block), 1, 1), (block, 1, 1)


def _plane(columns: int, rows: int, most: int) -> tuple[Dim3, Dim3]:
    """Grid and block for a thread an element of a matrix."""
    x = min(columns, most)
    y = min(rows, max(1, most // x))
    return (-(-columns // x), -(-rows // y), 1), (x, y, 1)
