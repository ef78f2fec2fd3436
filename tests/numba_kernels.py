"""Kernels in Python for numba, their oracles in numpy, and the LLVM IR that numba writes for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numba.cuda.dispatcher
import numpy as np
from numba import int32, types, uint32
from numba.cuda.compiler import compile_cuda

Array = np.ndarray[Any, Any]
cuda: Any = numba.cuda
CAPABILITY = (7, 5)


@dataclass(frozen=True)
class Case:
    """A kernel, an oracle that changes the arguments' arrays as the kernel must, and one launch."""

    kernel: Callable[..., None]
    oracle: Callable[..., None]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Array | int, ...]

    @property
    def name(self) -> str:
        return self.kernel.__name__


def llvm_ir(kernel: Callable[..., None], args: Sequence[Array | int]) -> str:
    """What numba's `inspect_llvm` shows of a kernel: several modules, one after the other.

    Device functions ask a GPU which one it is; they are told, so that none is needed.
    """
    dispatcher: Any = numba.cuda.dispatcher
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
    signature = tuple(map(_type, args))
    compiled = compile_cuda(kernel, types.void, signature, cc=CAPABILITY)
    library, _ = compiled.target_context.prepare_cuda_kernel(
        compiled.library, compiled.fndesc, False, False, {}, "kernel.py", 1
    )
    return library.get_llvm_str()


def _type(arg: Array | int) -> types.Type:
    if not isinstance(arg, np.ndarray):
        return int32
    return types.Array(getattr(types, arg.dtype.name), arg.ndim, "C")


def arguments(args: Sequence[Array | int]) -> list[bytes | int]:
    """The arguments as numba's kernels take them: of an array its owner, sizes, data, shape and strides."""
    flat: list[bytes | int] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            flat += [b"", b"", arg.size, arg.itemsize, arg.tobytes(), *arg.shape, *arg.strides]
        else:
            flat.append(arg)
    return flat


def data_of(args: Sequence[Array | int], contents: Sequence[bytes]) -> list[bytes]:
    """Of the buffers after a launch those that hold the arrays' elements."""
    count = sum(isinstance(arg, np.ndarray) for arg in args)
    return [contents[3 * index + 2] for index in range(count)]


def _i32(*values: int) -> Array:
    return np.array(values, dtype=np.int32)


def _some(seed: int, n: int, low: int = -1000, high: int = 1000) -> Array:
    return np.random.default_rng(seed).integers(low, high, n).astype(np.int32)


# --------------------------------------------------------------------- kernels


def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


def saxpy(alpha, x, y):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    if i < y.shape[0]:
        y[i] += alpha * x[i]


def dot(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(out, 0, a[i] * b[i])


def histogram(values, counts):
    start = cuda.grid(1)
    for i in range(start, values.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, values[i] & 3, 1)


def reverse_block(x):
    tile = cuda.shared.array(32, dtype=int32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    x[t] = tile[cuda.blockDim.x - 1 - t]


def transpose(a, b):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        b[x, y] = a[y, x]


def sort_rows(rows):
    i = cuda.grid(1)
    local = cuda.local.array(4, dtype=int32)
    for k in range(4):
        local[k] = rows[i, k]
    for k in range(1, 4):
        value = local[k]
        j = k - 1
        while j >= 0 and local[j] > value:
            local[j + 1] = local[j]
            j -= 1
        local[j + 1] = value
    for k in range(4):
        rows[i, k] = local[k]


@cuda.jit(device=True)
def _gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


def gcd(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = _gcd(a[i], b[i])


def bits(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = cuda.popc(x[i]) * 100 + cuda.clz(x[i])


def xorshift(state):
    i = cuda.grid(1)
    x = state[i]
    for _ in range(3):
        x ^= uint32(x << uint32(13))
        x ^= uint32(x >> uint32(17))
        x ^= uint32(x << uint32(5))
    state[i] = x


def warp_sum(x, out):
    t = cuda.threadIdx.x
    value = x[t]
    step = 16
    while step > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        step //= 2
    if t == 0:
        out[0] = value


def compare_and_swap(lock, out):
    i = cuda.grid(1)
    out[i] = cuda.atomic.cas(lock, 0, i, i + 1)


# --------------------------------------------------------------------- oracles


def _vector_add(a, b, c):
    c[:] = a + b


def _saxpy(alpha, x, y):
    y += alpha * x


def _dot(a, b, out):
    out[0] += (a * b).sum()


def _histogram(values, counts):
    counts += np.bincount(values & 3, minlength=counts.size).astype(counts.dtype)


def _reverse_block(x):
    x[:] = x[::-1].copy()


def _transpose(a, b):
    b[:] = a.T


def _sort_rows(rows):
    rows.sort(axis=1)


def _gcds(a, b, out):
    out[:] = np.gcd(a, b)


def _bits(x, out):
    out[:] = [bin(v).count("1") * 100 + 32 - v.bit_length() for v in x.tolist()]


def _xorshift(state):
    for _ in range(3):
        state ^= state << np.uint32(13)
        state ^= state >> np.uint32(17)
        state ^= state << np.uint32(5)


def _warp_sum(x, out):
    out[0] = x.sum()


def _compare_and_swap(lock, out):
    out[:] = np.arange(out.size)
    lock[0] = out.size


_ONE = (1, 1, 1)
CASES = (
    Case(vector_add, _vector_add, (2, 1, 1), (4, 1, 1), (_some(1, 7), _some(2, 7), _i32(*[0] * 7))),
    Case(saxpy, _saxpy, _ONE, (8, 1, 1), (-7, _some(3, 6), _some(4, 6))),
    Case(dot, _dot, (2, 1, 1), (3, 1, 1), (_some(5, 5), _some(6, 5), _i32(11))),
    Case(histogram, _histogram, _ONE, (4, 1, 1), (_some(7, 11), _i32(0, 0, 5, 0))),
    Case(reverse_block, _reverse_block, _ONE, (8, 1, 1), (_some(8, 8),)),
    Case(
        transpose,
        _transpose,
        _ONE,
        (4, 4, 1),
        (_some(9, 6).reshape(2, 3), np.zeros((3, 2), dtype=np.int32)),
    ),
    Case(sort_rows, _sort_rows, _ONE, (3, 1, 1), (_some(10, 12).reshape(3, 4),)),
    Case(gcd, _gcds, _ONE, (4, 1, 1), (_i32(12, 35, 7, 1024), _i32(18, 21, 0, 96), _i32(0, 0, 0, 0))),
    Case(bits, _bits, _ONE, (4, 1, 1), (np.array([0, 1, 2**31, 12345], dtype=np.uint32), _i32(0, 0, 0, 0))),
    Case(xorshift, _xorshift, _ONE, (4, 1, 1), (np.array([1, 2, 3, 2**32 - 1], dtype=np.uint32),)),
    Case(warp_sum, _warp_sum, _ONE, (32, 1, 1), (_some(11, 32), _i32(0))),
    Case(compare_and_swap, _compare_and_swap, _ONE, (4, 1, 1), (_i32(0), _i32(9, 9, 9, 9))),
)

if __name__ == "__main__":
    (found,) = [case for case in CASES if case.name == sys.argv[1]]
    print(llvm_ir(found.kernel, found.args))
