"""What a row of the tables of kernels is, and the data that rows are made of.

A kernel is a file `TOPIC/NAME.cu` with one `__global__` function of the file's name. Its row has launches,
small enough for an interpreter that takes a millisecond an instruction, and an oracle: a function of the
kernel's arguments in their order that changes the arrays as the kernel must, written from the definition of
what is computed with Python's own integers, numpy, hashlib, networkx and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
Argument = Array | int
Dim3 = tuple[int, int, int]

HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Launch:
    """`kernel<<<grid, block, shared>>>(*args)`: an int for a scalar, a read-only array of one dimension, of
    the kernel's element type, for a pointer. `shared` is the dynamic shared memory in bytes.
    """

    grid: Dim3
    block: Dim3
    args: tuple[Argument, ...]
    shared: int = 0

    @property
    def threads(self) -> int:
        """The number of threads of the whole grid."""
        return int(np.prod(self.grid)) * int(np.prod(self.block))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel, what it means, and launches of it. `architecture` is the least that has what it calls."""

    topic: str
    name: str
    oracle: Callable[..., None]
    launches: tuple[Launch, ...]
    architecture: str = "compute_75"

    @property
    def file(self) -> Path:
        """The kernel's source."""
        return HERE / self.topic / f"{self.name}.cu"

    def expect(self, launch: Launch) -> list[Array]:
        """Every array argument of a launch, in order, as it must be afterwards."""
        copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in launch.args]
        self.oracle(*copies)
        return [copy for copy in copies if isinstance(copy, np.ndarray)]


def kernel(
    topic: str, name: str, oracle: Callable[..., None], *launches: Launch, architecture: str = "compute_75"
) -> Kernel:
    """A row of a table."""
    return Kernel(topic, name, oracle, launches, architecture)


def launch(grid: int | Dim3, block: int | Dim3, *args: Argument, shared: int = 0) -> Launch:
    """A launch; one number means a size along x alone."""
    for arg in args:
        if isinstance(arg, np.ndarray):
            arg.setflags(write=False)
    return Launch(_dim3(grid), _dim3(block), args, shared)


def _dim3(size: int | Dim3) -> Dim3:
    return (size, 1, 1) if isinstance(size, int) else size


# Buffers.


def i32(*values: int) -> Array:
    """Signed words."""
    return np.array(values, dtype=np.int32)


def i16(*values: int) -> Array:
    """Signed half words."""
    return np.array(values, dtype=np.int16)


def u32(*values: int) -> Array:
    """Unsigned words."""
    return np.array(values, dtype=np.uint32)


def u16(*values: int) -> Array:
    """Unsigned half words."""
    return np.array(values, dtype=np.uint16)


def u64(*values: int) -> Array:
    """Unsigned double words."""
    return np.array(values, dtype=np.uint64)


def u8(text: bytes | Iterable[int], width: int = 0) -> Array:
    """Bytes, with zeros after them up to `width`."""
    return np.frombuffer(bytes(text).ljust(width, b"\0"), dtype=np.uint8).copy()


def zeros(n: int, dtype: DTypeLike = np.int32) -> Array:
    """A buffer of zeros."""
    return np.zeros(n, dtype=dtype)


def junk(n: int, dtype: DTypeLike = np.int32) -> Array:
    """A buffer for results that holds something else before."""
    return np.full(n * np.dtype(dtype).itemsize, 0xA5, dtype=np.uint8).view(dtype)


def draw(
    seed: int, n: int, low: int | None = None, high: int | None = None, dtype: DTypeLike = np.int32
) -> Array:
    """`n` numbers from low to high - 1 (by default all that the type holds), the same for the same seed."""
    limits = np.iinfo(np.dtype(dtype).name)
    first = limits.min if low is None else low
    last = limits.max if high is None else high - 1
    return np.random.default_rng(seed).integers(first, last, n, dtype=dtype, endpoint=True)


def mixed(seed: int, n: int, dtype: DTypeLike = np.int32) -> Array:
    """`n` numbers of every bit length: random ones, each shifted right by a random number of bits."""
    sizes = np.random.default_rng(seed + 1000).integers(0, 8 * np.dtype(dtype).itemsize, n)
    return draw(seed, n, dtype=dtype) >> sizes.astype(dtype)


# What oracles are made of.


def put(out: Array, values: Iterable[int], at: int = 0) -> None:
    """Write numbers of any size to `out[at:]`, modulo what its elements hold."""
    width = 8 * out.itemsize
    words = [int(value) % (1 << width) for value in values]
    out[at : at + len(words)] = np.array(words, dtype=f"u{out.itemsize}").view(out.dtype)


def ints(values: Array) -> list[int]:
    """The elements as Python's integers, which do not wrap."""
    return values.tolist()


def rows_of(values: Array, width: int) -> list[list[int]]:
    """The elements in rows of `width`."""
    return values.reshape(-1, width).tolist()
