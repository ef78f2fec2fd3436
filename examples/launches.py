"""Launches of every kernel in this folder, for tests and benchmarks of any backend.

The first launch of a kernel is tiny (a handful of threads, at most five elements), so that it suits a
backend that takes seconds. The later ones take the corners: a warp that is partly filled, several warps,
several thread blocks, negative numbers, numbers of one, two and three 12-bit parts, and arithmetic that wraps
at 32 bits. What a launch must leave in memory is `Launch.expect()`. Needs numpy alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oracles import Array, Parameter, expect

Dim3 = tuple[int, int, int]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Launch:
    """One launch: `kernel<<<grid, block>>>(*args)`.

    `args` are in the order of the kernel's parameters: an int for a 32-bit scalar; for a pointer a read-only
    array of one dimension (int32, uint32 or int8, as the kernel declares it), which is what the buffer holds
    before the launch.
    """

    kernel: str
    title: str
    grid: Dim3
    block: Dim3
    args: tuple[Parameter, ...]

    @property
    def file(self) -> Path:
        """The kernel's source: a file of the kernel's name."""
        return HERE / f"{self.kernel}.cu"

    @property
    def id(self) -> str:
        """A name for test reports, such as `dot-three-elements`."""
        return f"{self.kernel}-{self.title}".replace(" ", "-")

    @property
    def threads(self) -> int:
        """The number of threads of the whole grid."""
        return int(np.prod(self.grid)) * int(np.prod(self.block))

    def fresh_args(self) -> list[Parameter]:
        """The arguments with writable copies of the arrays, for one run."""
        return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in self.args]

    def expect(self) -> list[Array]:
        """Every array argument, in the order of the parameters, as it must be after the launch."""
        return expect(self.kernel, self.args)


# Around 12, 24 and 32 bits, where a number takes one 12-bit part more, changes its sign or wraps.
EDGES = (0, 1, -1, 2047, 2048, 4095, 4096, -2048, -4096, 2**24 - 1, 2**24, -(2**24), 2**31 - 1, -(2**31))


def _i32(*values: int) -> Array:
    return np.array(values, dtype=np.int32)


def _u32(*values: int) -> Array:
    return np.array(values, dtype=np.uint32)


def _zeros(n: int) -> Array:
    return np.zeros(n, dtype=np.int32)


def _uzeros(n: int) -> Array:
    return np.zeros(n, dtype=np.uint32)


def _some(seed: int, n: int, low: int = -(2**31), high: int = 2**31) -> Array:
    """`n` numbers from low to high - 1, the same on every call with the same seed."""
    return np.random.default_rng(seed).integers(low, high, n).astype(np.int32)


def _mixed(seed: int, n: int) -> Array:
    """`n` numbers of very different sizes: the edges first, then some of every bit length."""
    sizes = np.random.default_rng(seed + 1000).integers(0, 32, n)
    values = _some(seed, n).astype(np.int64) >> sizes
    values[: len(EDGES)] = EDGES[:n]
    return values.astype(np.int32)


def _text(*rows: str, width: int) -> Array:
    """The rows in Latin-1, each padded with zero bytes to `width`."""
    return np.frombuffer(b"".join(row.encode("latin-1").ljust(width, b"\0") for row in rows), dtype=np.int8)


def _pieces(x: Sequence[int]) -> tuple[Array, Array, Array, Array]:
    """Buffers for `piecewise` at the given numbers."""
    return np.array(x, dtype=np.int32), _some(len(x), len(x)), _some(len(x) + 1, len(x)), _zeros(1)


def _launch(kernel: str, title: str, grid: int | Dim3, block: int | Dim3, *args: Parameter) -> Launch:
    for arg in args:
        if isinstance(arg, np.ndarray):
            arg.setflags(write=False)
    return Launch(kernel, title, _dim3(grid), _dim3(block), args)


def _dim3(size: int | Dim3) -> Dim3:
    return (size, 1, 1) if isinstance(size, int) else size


LAUNCHES: tuple[Launch, ...] = (
    _launch("vecadd", "three elements", 1, 3, _i32(1, 2, 3), _i32(10, 20, 30), _zeros(3), 3),
    _launch("vecadd", "part of two warps", 1, 40, _mixed(1, 37), _mixed(2, 37)[::-1].copy(), _zeros(37), 37),
    _launch("vecadd", "three blocks", 3, 8, _mixed(3, 21), _some(4, 21), _some(5, 24), 21),
    _launch("saxpy", "three elements", 1, 3, 3, _i32(1, 2, 3), _i32(10, 20, 30), 3),
    _launch("saxpy", "wraps", 1, 20, -65537, _mixed(6, 18), _some(7, 18), 18),
    _launch("saxpy", "two blocks", 2, 16, 4096, _some(8, 30, -5000, 5000), _some(9, 30, -5000, 5000), 30),
    _launch("dot", "three elements", 1, 3, _i32(1, 2, 3), _i32(4, 5, 6), _zeros(1), 3),
    _launch("dot", "wraps onto a start value", 1, 36, _mixed(10, 35), _some(11, 35), _i32(-7), 35),
    _launch("dot", "three blocks", 3, 4, _some(12, 10, -99, 100), _some(13, 10, -99, 100), _zeros(1), 10),
    _launch("matvec", "two by two", 1, 2, _i32(1, 2, 3, 4), _i32(5, 6), _zeros(2), 2, 2),
    _launch("matvec", "five by seven", 1, 8, _some(14, 35, -3000, 3000), _some(15, 7), _some(16, 6), 5, 7),
    _launch("matvec", "two blocks", 2, 4, _mixed(17, 21), _i32(-1, 4096, 3), _zeros(7), 7, 3),
    _launch("matmul", "two by two", 1, (2, 2, 1), _i32(1, 2, 3, 4), _i32(5, 6, 7, 8), _zeros(4), 2, 2, 2),
    _launch(
        "matmul", "five by three by four", 1, (6, 6, 1), _mixed(18, 15), _some(19, 12), _zeros(20), 5, 3, 4
    ),
    _launch(
        "matmul",
        "four blocks",
        (2, 2, 1),
        (2, 3, 1),
        _some(20, 8, -9, 10),
        _some(21, 6, -9, 10),
        _zeros(12),
        4,
        2,
        3,
    ),
    _launch("transpose", "two by two", 1, (2, 2, 1), _i32(1, 2, 3, 4), _zeros(4), 2, 2),
    _launch("transpose", "part of two warps", 1, (7, 6, 1), _mixed(22, 35), _zeros(35), 5, 7),
    _launch("transpose", "four blocks", (2, 2, 1), (2, 4, 1), _some(23, 15), _some(24, 16), 5, 3),
    _launch("relu", "four elements", 1, 4, _i32(5, -5, 0, 4096), _zeros(4), 4),
    _launch("relu", "edges", 1, 16, _mixed(25, 15), _some(26, 16), 15),
    _launch("relu", "two blocks", 2, 20, _some(27, 37), _zeros(37), 37),
    _launch("maximum", "three elements", 1, 1, _i32(3, 7, 5), _zeros(1), 3),
    _launch("maximum", "all negative and idle threads", 2, 3, _some(28, 12, -(2**31), 0), _zeros(1), 12),
    _launch("maximum", "edges", 1, 1, _mixed(29, 15), _zeros(1), 15),
    _launch("running_sum", "three elements", 1, 1, _i32(1, 2, 3), _zeros(3), 3),
    _launch("running_sum", "wraps", 1, 1, _mixed(30, 20), _zeros(20), 20),
    _launch("histogram", "four values", 1, 4, _i32(1, 0, 1, 2), _zeros(3), 4, 3),
    _launch("histogram", "values outside", 1, 40, _some(31, 37, -2, 7), _i32(9, 0, 4095, -1, 7), 37, 5),
    _launch("histogram", "three blocks", 3, 8, _some(32, 24, 0, 4), _zeros(4), 24, 4),
    _launch("collatz", "three numbers", 1, 3, _u32(1, 2, 3), _zeros(3), 3),
    _launch("collatz", "part of a warp", 1, 16, _u32(*range(1, 13)), _some(33, 13), 12),
    _launch("collatz", "two blocks", 2, 3, _u32(9, 1, 16, 5, 4096), _zeros(5), 5),
    _launch("gcd", "two pairs", 1, 2, _u32(6, 9), _u32(4, 3), _uzeros(2), 2),
    _launch(
        "gcd",
        "zeros and large ones",
        1,
        8,
        _u32(0, 5, 0, 2**31, 3 * 2**30, 4097, 2**24),
        _u32(0, 0, 7, 2**30, 2**31, 4097, 3 * 2**22),
        _uzeros(8),
        7,
    ),
    _launch("gcd", "two blocks", 2, 4, _u32(12, 1, 35, 8, 27, 14), _u32(18, 9, 21, 8, 6, 0), _uzeros(6), 6),
    _launch("popcount", "three numbers", 1, 3, _u32(0, 1, 6), _zeros(3), 3),
    _launch("popcount", "edges", 1, 16, _mixed(34, 15).view(np.uint32), _some(35, 16), 15),
    _launch("popcount", "two blocks", 2, 4, _mixed(36, 8).view(np.uint32)[::-1].copy(), _zeros(8), 8),
    _launch("string_length", "two strings", 1, 2, _text("ab", "", width=3), _zeros(2), 3, 2),
    _launch(
        "string_length",
        "full rows and high bytes",
        2,
        3,
        _text("", "a", "four", "\xff\x80", "fives", width=5),
        _some(37, 6),
        5,
        5,
    ),
    _launch("to_upper", "four bytes", 1, 4, _text("aZ1z", width=4), _text("....", width=4), 4),
    _launch(
        "to_upper",
        "sentence",
        1,
        40,
        _text("`a mix{Of} 32-bit @words[ and \xe4\xff bytes", width=39),
        _text("?" * 40, width=40),
        39,
    ),
    _launch("to_upper", "two blocks", 2, 5, _text("hello, gpu", width=10), _text("", width=12), 10),
    _launch("piecewise", "all five pieces", 1, 5, *_pieces((-3, -4, 0, 2, 9)), 7, 5),
    _launch("piecewise", "edges", 1, 20, *_pieces(EDGES), 4096, len(EDGES)),
    _launch("piecewise", "two blocks", 2, 20, *_pieces(_some(38, 37, -4, 5).tolist()), 3, 37),
    _launch("find_first", "two rows", 1, 2, _i32(1, 2, 3, 4), _zeros(2), 2, 2, 4),
    _launch("find_first", "part of a warp", 1, 12, _some(39, 60, 0, 6), _some(40, 11), 10, 6, 5),
    _launch("find_first", "three blocks", 3, 2, _mixed(41, 25), _zeros(5), 5, 5, -(2**31)),
    _launch("ping_pong", "one step", 1, 3, _i32(1, 2, 3), _zeros(3), 3, 1),
    _launch("ping_pong", "even number of steps", 1, 5, _i32(1, 0, 0, 0, 0), _zeros(5), 5, 4),
    _launch("ping_pong", "part of two warps", 1, 40, _mixed(42, 40), _zeros(40), 40, 3),
)
