"""The workloads' kernels in numba's Python. Needs numba, which is told by its environment to simulate.

The simulator looks for the module `cuda` among the globals of a kernel.
"""

from __future__ import annotations

import importlib
from typing import Any

from numpy.typing import NDArray

cuda: Any = importlib.import_module("numba.cuda")
Array = NDArray[Any]


def vecadd(a: Array, b: Array, c: Array, n: int) -> None:
    """c = a + b."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        c[i] = a[i] + b[i]


def matmul(a: Array, b: Array, c: Array, n: int) -> None:
    """c = a b, of n rows and columns."""
    row, column = cuda.threadIdx.y, cuda.threadIdx.x
    total = 0
    for k in range(n):
        total += a[row * n + k] * b[k * n + column]
    c[row * n + column] = total
