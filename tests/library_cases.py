"""What each routine of the library must give: from Python's integers and numpy, with operands to try."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from qgpu.runtime.library.plans import Array

LOW, HIGH = -(2**31), 2**31 - 1
EDGES = (0, 1, -1, 2, -3, 7, 2047, -2048, 46340, 46341, 2**24, 2**30, -(2**30), HIGH, LOW)
Oracle = Callable[..., Any]


class Refusal(Exception):
    """The routine must stop."""


def fits(value: int) -> int:
    """The value, if 32 bits hold it."""
    if not LOW <= value <= HIGH:
        raise Refusal
    return value


def demand(condition: bool) -> None:
    """Stop where a condition does not hold."""
    if not condition:
        raise Refusal


def each(function: Callable[..., int]) -> Oracle:
    """A function of numbers, of whole operands, one of which may stand for many."""

    def oracle(*operands: Array) -> Array:
        wide = [one.astype(object) for one in np.broadcast_arrays(*operands)]
        values = [
            fits(int(function(*map(int, items)))) for items in zip(*(one.flat for one in wide), strict=True)
        ]
        return np.array(values, object).reshape(wide[0].shape)

    return oracle


def running(function: Callable[[int, int], int]) -> Callable[[Iterable[int]], list[int]]:
    """Every partial result, each of which has to fit."""
    return lambda values: [fits(one) for one in itertools.accumulate(values, function)]


_sums, _products = running(int.__add__), running(int.__mul__)


def _ints(a: Array) -> list[int]:
    return [int(one) for one in a.flat]


def _inner(a: Sequence[int], b: Sequence[int]) -> int:
    return _sums([fits(x * y) for x, y in zip(a, b, strict=True)])[-1]


def _floor_divide(a: int, b: int) -> int:
    demand(b != 0)
    return a // b


def _modulo(a: int, b: int) -> int:
    demand(b != 0)
    return a % b


def _power(a: int, b: int) -> int:
    demand(b >= 0)
    if abs(a) > 1 and b > 64:
        raise Refusal
    return a**b if abs(a) > 1 else a ** (b % 2 + 2 * (b > 0))


def _shift_left(a: int, b: int) -> int:
    demand(b >= 0)
    return a << min(b, 64)


def _shift_right(a: int, b: int) -> int:
    demand(b >= 0)
    return a >> min(b, 64)


def _isqrt(a: int) -> int:
    demand(a >= 0)
    return math.isqrt(a)


def _gather(a: Array, index: Array) -> Array:
    demand(all(-len(a) <= i < len(a) for i in _ints(index)))
    return a[index]


def _histogram(a: Array, bins: Array) -> Array:
    demand(all(0 <= value < int(bins) for value in _ints(a)))
    return np.bincount(a.ravel(), minlength=int(bins))


def _matmul(a: Array, b: Array) -> Any:
    rows = a.tolist() if a.ndim == 2 else [a.tolist()]
    columns = b.T.tolist() if b.ndim == 2 else [b.tolist()]
    table = [[_inner(row, column) for column in columns] for row in rows]
    return np.array(table).reshape((*a.shape[:-1], *b.shape[1:]))


ORACLES: dict[str, Oracle] = {
    "add": each(lambda a, b: a + b),
    "subtract": each(lambda a, b: a - b),
    "multiply": each(lambda a, b: a * b),
    "floor_divide": each(_floor_divide),
    "modulo": each(_modulo),
    "power": each(_power),
    "minimum": each(min),
    "maximum": each(max),
    "gcd": each(math.gcd),
    "lcm": each(math.lcm),
    "equal": each(lambda a, b: a == b),
    "not_equal": each(lambda a, b: a != b),
    "less": each(lambda a, b: a < b),
    "less_equal": each(lambda a, b: a <= b),
    "greater": each(lambda a, b: a > b),
    "greater_equal": each(lambda a, b: a >= b),
    "bit_and": each(lambda a, b: a & b),
    "bit_or": each(lambda a, b: a | b),
    "bit_xor": each(lambda a, b: a ^ b),
    "shift_left": each(_shift_left),
    "shift_right": each(_shift_right),
    "negate": each(lambda a: -a),
    "absolute": each(int.__abs__),
    "sign": each(lambda a: (a > 0) - (a < 0)),
    "isqrt": each(_isqrt),
    "bit_not": each(lambda a: ~a),
    "popcount": each(lambda a: (a % 2**32).bit_count()),
    "bit_length": each(int.bit_length),
    "where": each(lambda condition, a, b: a if condition else b),
    "clip": each(lambda a, low, high: min(max(a, low), high)),
    "sum": lambda a: _sums(_ints(a))[-1],
    "product": lambda a: _products(_ints(a))[-1],
    "smallest": np.min,
    "largest": np.max,
    "any": np.any,
    "all": np.all,
    "count_nonzero": np.count_nonzero,
    "argmin": np.argmin,
    "argmax": np.argmax,
    "cumsum": lambda a: _sums(_ints(a)),
    "cumprod": lambda a: _products(_ints(a)),
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "diff": lambda a: [fits(y - x) for x, y in itertools.pairwise(_ints(a))],
    "sort": np.sort,
    "argsort": lambda a: np.argsort(a, kind="stable"),
    "reverse": lambda a: a[::-1],
    "unique": lambda a: sorted(set(_ints(a))),
    "compress": lambda a, mask: a[mask != 0],
    "gather": _gather,
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "histogram": _histogram,
    "iota": lambda start, count: [fits(int(start) + i) for i in range(int(count))],
    "dot": _matmul,
    "matvec": _matmul,
    "vecmat": _matmul,
    "matmul": _matmul,
    "outer": lambda a, b: [[fits(x * y) for y in _ints(b)] for x in _ints(a)],
    "transpose": np.transpose,
    "diagonal": np.diagonal,
    "row_sums": lambda a: [_sums(row)[-1] for row in a.tolist()],
    "column_sums": lambda a: [_sums(column)[-1] for column in a.T.tolist()],
}
"""Of each routine: its result, or Refusal where it must stop."""


def drawn(generator: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> Array:
    """Numbers from low to high, of int32."""
    return generator.integers(low, high, shape, endpoint=True).astype(np.int32)


def mixed(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of every size, the edges among them."""
    wide = drawn(generator, shape, LOW, HIGH) >> drawn(generator, shape, 0, 31)
    edges = generator.choice(np.array(EDGES, np.int32), shape)
    return np.where(generator.random(shape) < 0.5, edges, wide).astype(np.int32)


def operands(
    name: str, generator: np.random.Generator, sizes: tuple[int, int, int], wild: bool
) -> list[Array]:
    """Operands of a routine: small ones, whose results fit, or `wild` ones, whose may not."""
    n, rows, columns = sizes

    def array(shape: tuple[int, ...], low: int = -9, high: int = 9) -> Array:
        return mixed(generator, shape) if wild else drawn(generator, shape, low, high)

    number = array((), 1, 9)
    special: dict[str, Callable[[], list[Array]]] = {
        "floor_divide": lambda: [array((n,), -99, 99), np.where((b := array((n,))) == 0, 4, b)],
        "modulo": lambda: [array((n,), -99, 99), np.where((b := array((n,))) == 0, 4, b)],
        "power": lambda: [array((n,)), drawn(generator, (n,), -1 if wild else 0, 9 if wild else 7)],
        "shift_left": lambda: [array((n,)), drawn(generator, (n,), -1 if wild else 0, 20)],
        "shift_right": lambda: [array((n,)), drawn(generator, (n,), -1 if wild else 0, 40)],
        "isqrt": lambda: [array((n,), 0, HIGH)],
        "product": lambda: [array((min(n, 7),))],
        "cumprod": lambda: [array((min(n, 7),))],
        "add": lambda: [array((rows, columns)), number],
        "where": lambda: [drawn(generator, (n,), 0, 1), array((n,)), number],
        "clip": lambda: [array((n,)), drawn(generator, (), -5, 0), drawn(generator, (), 1, 5)],
        "all": lambda: [drawn(generator, (n,), 0 if wild else 1, 3)],
        "any": lambda: [drawn(generator, (n,), 0, int(wild))],
        "diff": lambda: [array((max(n, 2),))],
        "unique": lambda: [np.sort(array((n,)))],
        "compress": lambda: [
            array((n,)),
            np.where(np.arange(n), drawn(generator, (n,), 0, 1), 1).astype(np.int32),
        ],
        "gather": lambda: [array((rows, columns)), drawn(generator, (n,), -rows - wild, rows - 1)],
        "concatenate": lambda: [array((n,)), array((rows,))],
        "histogram": lambda: [drawn(generator, (n,), -int(wild), 5), np.array(6, np.int32)],
        "iota": lambda: [np.array(HIGH - rows if wild else -3, np.int32), np.array(n, np.int32)],
        "dot": lambda: [array((n,)), array((n,))],
        "matvec": lambda: [array((rows, columns)), array((columns,))],
        "vecmat": lambda: [array((rows,)), array((rows, columns))],
        "matmul": lambda: [array((rows, columns)), array((columns, n % 5 + 1))],
        "outer": lambda: [array((rows,)), array((columns,))],
    }
    if name in special:
        return special[name]()
    from qgpu.runtime.library import ROUTINES

    shapes = {"any": (n,), "vector": (n,), "matrix": (rows, columns)}
    return [array(shapes[kind]) for kind in ROUTINES[name].takes]
