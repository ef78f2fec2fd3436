"""What the kernels of this folder compute, in numpy.

An oracle is written from the meaning of its kernel (the comment at the top of the .cu file), not from its
code. Needs numpy alone.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Parameter = Array | int


def expect(kernel: str, args: Sequence[Parameter]) -> list[Array]:
    """What a launch of `kernel` that covers all its elements makes of its array arguments.

    `args` are in the order of the kernel's parameters: one-dimensional arrays and ints. Returns one new array
    per array in `args`, in their order, of the same shape and dtype; those that the kernel only reads come
    back with the contents they had. Raises KeyError where no such kernel is in this folder.
    """
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    ORACLES[kernel](*copies)
    return [copy for copy in copies if isinstance(copy, np.ndarray)]


# One oracle per kernel. It changes the arrays it is given, as the kernel does.


def _wide(values: Array) -> NDArray[np.int64]:
    """As 64-bit integers, whose sums and products are right modulo 2**32 even where they overflow."""
    return values.astype(np.int64)


def _wrap(values: NDArray[np.int64]) -> NDArray[np.int32]:
    """The low 32 bits, read as a signed number."""
    return values.astype(np.uint32).view(np.int32)


def _vecadd(a: Array, b: Array, c: Array, n: int) -> None:
    c[:n] = _wrap(_wide(a[:n]) + _wide(b[:n]))


def _saxpy(alpha: int, x: Array, y: Array, n: int) -> None:
    y[:n] = _wrap(alpha * _wide(x[:n]) + _wide(y[:n]))


def _dot(a: Array, b: Array, out: Array, n: int) -> None:
    out[:1] = _wrap(_wide(out[:1]) + np.dot(_wide(a[:n]), _wide(b[:n])))


def _matvec(a: Array, x: Array, y: Array, rows: int, columns: int) -> None:
    matrix = _wide(a[: rows * columns]).reshape(rows, columns)
    y[:rows] = _wrap(matrix @ _wide(x[:columns]))


def _matmul(a: Array, b: Array, c: Array, rows: int, inner: int, columns: int) -> None:
    left = _wide(a[: rows * inner]).reshape(rows, inner)
    right = _wide(b[: inner * columns]).reshape(inner, columns)
    c[: rows * columns] = _wrap(left @ right).ravel()


def _transpose(source: Array, out: Array, rows: int, columns: int) -> None:
    out[: rows * columns] = source[: rows * columns].reshape(rows, columns).T.ravel()


def _relu(x: Array, y: Array, n: int) -> None:
    y[:n] = np.maximum(_wide(x[:n]), 0)


def _maximum(x: Array, out: Array, n: int) -> None:
    out[0] = np.max(_wide(x[:n]))


def _running_sum(x: Array, out: Array, n: int) -> None:
    out[:n] = _wrap(np.cumsum(_wide(x[:n])))


def _histogram(values: Array, counts: Array, n: int, bins: int) -> None:
    seen = _wide(values[:n])
    inside = seen[(seen >= 0) & (seen < bins)]
    counts[:bins] = _wrap(_wide(counts[:bins]) + np.bincount(inside, minlength=bins))


def _collatz(start: Array, steps: Array, n: int) -> None:
    x = _wide(start[:n])
    steps[:n] = 0
    while np.any(going := x != 1):
        steps[:n] = _wide(steps[:n]) + going
        x = np.where(going, np.where(x % 2 == 1, 3 * x + 1, x // 2) % 2**32, x)


def _gcd(a: Array, b: Array, out: Array, n: int) -> None:
    out[:n] = np.gcd(_wide(a[:n]), _wide(b[:n]))


def _popcount(x: Array, out: Array, n: int) -> None:
    out[:n] = np.bitwise_count(x[:n].astype(np.uint32))


def _string_length(text: Array, lengths: Array, width: int, rows: int) -> None:
    table = text[: rows * width].reshape(rows, width)
    ended = np.column_stack([table == 0, np.ones(rows, dtype=bool)])
    lengths[:rows] = np.argmax(ended, axis=1)


def _to_upper(text: Array, out: Array, n: int) -> None:
    out[:n] = np.frombuffer(text[:n].tobytes().upper(), dtype=np.int8)


def _piecewise(a: Array, b: Array, out: Array, zeros: Array, limit: int, n: int) -> None:
    x, y = _wide(a[:n]), _wide(b[:n])
    cases = [(x < 0) & (x % 2 == 1), x < 0, x == 0, x < limit]
    out[:n] = _wrap(np.select(cases, [-x, x + y, _wide(out[:n]), x * y], np.full(n, limit, dtype=np.int64)))
    zeros[:1] = _wrap(_wide(zeros[:1]) + np.count_nonzero(x == 0))
    b[:n] = _wrap(np.where((x > 0) & (x >= limit), x - limit, y))


def _find_first(table: Array, where: Array, rows: int, columns: int, key: int) -> None:
    hits = table[: rows * columns].reshape(rows, columns) == key
    where[:rows] = np.where(hits.any(axis=1), np.argmax(hits, axis=1), -1)


def _ping_pong(source: Array, target: Array, n: int, steps: int) -> None:
    buffers = (source, target)
    for step in range(steps):
        cells = _wide(buffers[step % 2][:n])
        buffers[(step + 1) % 2][:n] = _wrap(np.roll(cells, 1) + np.roll(cells, -1))


ORACLES: dict[str, Callable[..., None]] = {
    "collatz": _collatz,
    "dot": _dot,
    "find_first": _find_first,
    "gcd": _gcd,
    "histogram": _histogram,
    "matmul": _matmul,
    "matvec": _matvec,
    "maximum": _maximum,
    "piecewise": _piecewise,
    "ping_pong": _ping_pong,
    "popcount": _popcount,
    "relu": _relu,
    "running_sum": _running_sum,
    "saxpy": _saxpy,
    "string_length": _string_length,
    "to_upper": _to_upper,
    "transpose": _transpose,
    "vecadd": _vecadd,
}
