"""How fast kernels are interpreted: the IR interpreter and numba's CUDA simulator, on the same launches.

Each runs a launch once to warm up, then both in turn; the times are medians. Both results are held against
numpy's. An environment variable chooses the simulator before numba is imported, and the engine needs numba
without it: so the measurement has a process of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from qgpu.runtime.bench.isolate import isolated
from qgpu.runtime.bench.report import Section, Table, count
from qgpu.toolchain.compile import compile_to_ir
from qgpu.toolchain.diagnostics import failure

Array = NDArray[np.int32]
Dim3 = tuple[int, int, int]

VECADD = """
extern "C" __global__ void vecadd(const int *a, const int *b, int *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
"""
MATMUL = """
extern "C" __global__ void matmul(const int *a, const int *b, int *c, int n)
{
    int row = threadIdx.y, column = threadIdx.x, sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
"""


@dataclass(frozen=True)
class Workload:
    """A kernel in CUDA C, which `simulated` has by the same name, and one launch of it.

    Attributes:
        kernel: its name.
        expected: what it makes of its two arrays, which have `size` words.
        n: its last argument.
    """

    name: str
    kernel: str
    source: str
    expected: Callable[[Array, Array], Array]
    n: int
    size: int
    grid: Dim3
    block: Dim3


def _product(a: Array, b: Array) -> Array:
    return (a.reshape(16, 16) @ b.reshape(16, 16)).reshape(-1)


WORKLOADS = (
    Workload("vecadd of 4,096", "vecadd", VECADD, np.add, 4096, 4096, (32, 1, 1), (128, 1, 1)),
    Workload("matmul 16 x 16", "matmul", MATMUL, _product, 16, 256, (1, 1, 1), (16, 16, 1)),
)


@dataclass(frozen=True)
class Comparison:
    """Median seconds of a launch on both, and how many times as fast the IR interpreter is."""

    workload: str
    interpreter: float
    simulator: float

    @property
    def ratio(self) -> float:
        return self.simulator / self.interpreter


def interpreters_section(comparisons: list[Comparison]) -> Section:
    """What was measured, as a section."""
    rows = [
        (
            c.workload,
            *(f"{1000 * seconds:,.1f} ms" for seconds in (c.interpreter, c.simulator)),
            count(c.ratio),
        )
        for c in comparisons
    ]
    columns = ("launch", "IR interpreter", "numba's CUDA simulator", "times as fast")
    return Section(
        key="interpreters",
        heading="The IR interpreter beside numba's CUDA simulator",
        text="Both run each launch in turn, after one that warms up; results are held against numpy's.",
        tables=[Table("Median time of a launch", columns, rows)],
        data=[asdict(row) | {"ratio": row.ratio} for row in comparisons],
    )


def compare_interpreters(
    names: Sequence[str] = tuple(w.name for w in WORKLOADS), repeats: int = 3
) -> list[Comparison]:
    """Measure the workloads of these names, `repeats` times after one warm-up each, in a fresh process.

    Raises:
        DiagnosticError: numba is missing, or a result is wrong.
    """
    if importlib.util.find_spec("numba") is None:
        raise failure(
            "numba is missing, whose CUDA simulator the interpreter is compared with",
            "install it with: pip install numba",
        )
    return isolated(_compare_all, tuple(names), repeats)


def _compare_all(names: tuple[str, ...], repeats: int) -> list[Comparison]:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    kernels = importlib.import_module("qgpu.runtime.bench.simulated")
    return [_compare(workload, kernels, repeats) for workload in WORKLOADS if workload.name in names]


def _compare(workload: Workload, kernels: ModuleType, repeats: int) -> Comparison:
    runs = {"the IR interpreter": _interpreted(workload), "numba's simulator": _simulated(workload, kernels)}
    chance = np.random.default_rng(1)
    a, b = (chance.integers(-1000, 1000, workload.size, dtype=np.int32) for _ in "ab")
    expected = workload.expected(a, b)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            c = np.zeros_like(a)
            start = time.perf_counter()
            run(a, b, c)
            times[name].append(time.perf_counter() - start)
            if not np.array_equal(c, expected):
                raise failure(f"{workload.name} comes out wrong on {name}")
    return Comparison(workload.name, *(statistics.median(taken[1:]) for taken in times.values()))


def _interpreted(workload: Workload) -> Callable[[Array, Array, Array], None]:
    from qgpu.ir.interpreter import interpret

    (function,) = compile_to_ir(workload.source, f"{workload.name}.cu", "cu").functions

    def run(a: Array, b: Array, c: Array) -> None:
        interpret(function, [a.data, b.data, c.data, workload.n], workload.grid, workload.block)

    return run


def _simulated(workload: Workload, kernels: ModuleType) -> Callable[[Array, Array, Array], None]:
    kernel = kernels.cuda.jit(getattr(kernels, workload.kernel))

    def run(a: Array, b: Array, c: Array) -> None:
        kernel[workload.grid, workload.block](a, b, c, workload.n)

    return run
