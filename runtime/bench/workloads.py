"""Kernels at a size: what benchmarks launch, with an oracle for what it must leave in memory.

The sources are those of examples/. Numbers are drawn from a fixed seed, so a name says which launch it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.host import Dim3, Launch, build_launch
from qgpu.toolchain.compile import CompileOptions, compile_source
from qgpu.toolchain.diagnostics import Source

Array = NDArray[np.int32]
HERE = Path(__file__).parent / "kernels"
THREADS = 32
"""Threads of a block of one dimension, at most."""

SIDE = 8
"""Threads of a block of two dimensions in each, at most."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A launch of a kernel: `kernel<<<grid, block>>>(*arguments)`.

    Attributes:
        kernel, size: its name, and how large the problem is.
        arguments: arrays of words and numbers, in the order of the parameters.
        expected: what the arrays must hold afterwards, in that order.
    """

    kernel: str
    size: int
    grid: Dim3
    block: Dim3
    arguments: tuple[Array | int, ...]
    expected: tuple[Array, ...]

    @property
    def name(self) -> str:
        """The kernel and its size, as `dot/256`."""
        return f"{self.kernel}/{self.size}"

    @property
    def source(self) -> Source:
        """The kernel's text."""
        return Source(f"{self.kernel}.cu", (HERE / f"{self.kernel}.cu").read_text(encoding="utf-8"))

    @property
    def contents(self) -> list[bytes | int]:
        """The arguments as the host sends them."""
        return [a if isinstance(a, int) else a.tobytes() for a in self.arguments]

    def launch(self, machine: MachineDescription) -> Launch:
        """Compile the kernel for a machine, and build the launch.

        Raises:
            DiagnosticError: the kernel does not fit the machine.
            LaunchError: the launch does not.
        """
        options = CompileOptions(kernels=(self.kernel,))
        program = compile_source(self.source.text, self.source.name, "cu", machine, options)
        (kernel,) = program.kernels
        return build_launch(machine, kernel, self.grid, self.block, self.contents)

    def is_right(self, buffers: tuple[bytes | None, ...]) -> bool:
        """Whether the buffers after the launch (None for a scalar) are the oracle's."""
        return [b for b in buffers if b is not None] == [array.tobytes() for array in self.expected]


def _numbers(size: int, low: int, high: int, seed: int = 0) -> Array:
    return np.random.default_rng((size, seed)).integers(low, high, size).astype(np.int32)


def _line(size: int) -> tuple[Dim3, Dim3]:
    """A grid and blocks of one dimension with a thread an element."""
    threads = min(size, THREADS)
    return (-(-size // threads), 1, 1), (threads, 1, 1)


def _vecadd(n: int) -> Workload:
    a, b, c = _numbers(n, -(2**31), 2**31), _numbers(n, -(2**31), 2**31, 1), np.zeros(n, np.int32)
    return Workload("vecadd", n, *_line(n), (a, b, c, n), (a, b, a + b))


def _dot(n: int) -> Workload:
    a, b, out = _numbers(n, -999, 1000), _numbers(n, -999, 1000, 1), np.zeros(1, np.int32)
    return Workload("dot", n, *_line(n), (a, b, out, n), (a, b, np.array([a @ b], np.int32)))


def _matmul(n: int) -> Workload:
    a, b, c = _numbers(n * n, -99, 100), _numbers(n * n, -99, 100, 1), np.zeros(n * n, np.int32)
    side = min(n, SIDE)
    blocks = -(-n // side)
    product = (a.reshape(n, n) @ b.reshape(n, n)).reshape(-1)
    sizes: tuple[Dim3, Dim3] = (blocks, blocks, 1), (side, side, 1)
    return Workload("matmul", n, *sizes, (a, b, c, n, n, n), (a, b, product))


def _histogram(n: int) -> Workload:
    bins = 16
    values, counts = _numbers(n, 0, bins), np.zeros(bins, np.int32)
    found = np.bincount(values, minlength=bins).astype(np.int32)
    return Workload("histogram", n, *_line(n), (values, counts, n, bins), (values, found))


def _collatz(n: int) -> Workload:
    start = np.arange(1, n + 1, dtype=np.int32)
    steps = np.array([_collatz_steps(int(x)) for x in start], np.int32)
    return Workload("collatz", n, *_line(n), (start, np.zeros(n, np.int32), n), (start, steps))


def _collatz_steps(x: int) -> int:
    count = 0
    while x != 1:
        x = 3 * x + 1 if x % 2 else x // 2
        count += 1
    return count


def _gcd(n: int) -> Workload:
    a, b, out = _numbers(n, 1, 100), _numbers(n, 1, 100, 1), np.zeros(n, np.int32)
    return Workload("gcd", n, *_line(n), (a, b, out, n), (a, b, np.gcd(a, b).astype(np.int32)))


KERNELS: dict[str, Callable[[int], Workload]] = {
    "vecadd": _vecadd,
    "dot": _dot,
    "matmul": _matmul,
    "histogram": _histogram,
    "collatz": _collatz,
    "gcd": _gcd,
}
"""What makes the launch of a kernel at a size."""

SIZES = {"vecadd": 256, "dot": 384, "matmul": 8, "histogram": 256, "collatz": 32, "gcd": 64}
"""The sizes of the table: at least 1,000 generated tokens each, in 1,024 words of memory."""

SMALL_SIZES = {"vecadd": 32, "dot": 48, "matmul": 4, "histogram": 64, "collatz": 32, "gcd": 32}
"""The sizes for a machine of fewer words."""

WORDS = 1024

QUICK_SIZES = {"vecadd": 3, "dot": 3}
"""The sizes of `--quick`."""

GROWING_SIZES = {"vecadd": (16, 64, 256), "dot": (16, 64, 256), "matmul": (2, 4, 8, 16)}
"""The sizes over which growth with the problem is measured, those that fit."""


def sizes_for(machine: MachineDescription) -> dict[str, int]:
    """The sizes of the table, by kernel, for a machine."""
    return SIZES if machine.memory_words >= WORDS else SMALL_SIZES


def workload(kernel: str, size: int | None = None) -> Workload:
    """The launch of a kernel (one of KERNELS) at a size, by default that of the table."""
    return KERNELS[kernel](SIZES[kernel] if size is None else size)
