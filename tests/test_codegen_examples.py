"""Every example on the reference interpreter, and what its smallest launch costs in generated tokens."""

from functools import cache

import numpy as np
import pytest

from launches import LAUNCHES, Launch
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.reference.run import Trace, run_launch
from qgpu.toolchain.compile import compile_source

# Tokens of the first launch of each kernel, with EXIT: no change to code generation may make one dearer.
MOST_TOKENS = {
    "collatz": 90,
    "dot": 8,
    "find_first": 42,
    "gcd": 33,
    "histogram": 14,
    "matmul": 44,
    "matvec": 23,
    "maximum": 14,
    "piecewise": 36,
    "ping_pong": 41,
    "popcount": 44,
    "relu": 7,
    "running_sum": 15,
    "saxpy": 5,
    "string_length": 30,
    "to_upper": 33,
    "transpose": 18,
    "vecadd": 8,
}


@cache
def compiled(name: str) -> Kernel:
    launch = next(launch for launch in LAUNCHES if launch.kernel == name)
    program = compile_source(launch.file.read_text(), launch.file.name, "cu", DEFAULT)
    return program.kernels[0]


def run(launch: Launch) -> Trace:
    contents = [arg.tobytes() if isinstance(arg, np.ndarray) else arg for arg in launch.args]
    kernel = compiled(launch.kernel)
    return run_launch(build_launch(DEFAULT, kernel, launch.grid, launch.block, contents), 100_000)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.id)
def test_memory(launch: Launch) -> None:
    trace = run(launch)
    assert trace.fault is None
    buffers = [trace.buffer(region) for region in trace.launch.buffers if region]
    assert buffers == [array.tobytes() for array in launch.expect()]


@pytest.mark.parametrize("name", MOST_TOKENS)
def test_tokens(name: str) -> None:
    first = next(launch for launch in LAUNCHES if launch.kernel == name)
    assert len(run(first).generated) <= MOST_TOKENS[name]


def test_every_example_has_a_bound() -> None:
    assert set(MOST_TOKENS) == {launch.kernel for launch in LAUNCHES}
