"""Kernels that depend on warps of 32 lanes, on a machine whose warps are narrower."""

from __future__ import annotations

import numpy as np
import pytest

from qgpu.backends.machine.description import BUILTIN
from qgpu.backends.machine.host import LaunchError, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.ir.interpreter import interpret
from qgpu.runtime.vector import run_vector
from qgpu.toolchain.compile import CompileOptions, compile_source, compile_to_ir
from qgpu.toolchain.cuda import CudaOptions

SEED = BUILTIN["seed"]
OPTIONS = CompileOptions(cuda=CudaOptions(architecture="compute_80"))

DEPENDENT = {
    "vote": "__ballot_sync(0xffffffffu, t & 1)",
    "shuffle": "__shfl_xor_sync(0xffffffffu, t * 3, 1)",
    "shuffle under a mask from memory": "__shfl_sync(out[0], t * 3, 0)",
    "match": "__match_any_sync(0xffffffffu, t & 1)",
    "reduction": "__reduce_add_sync(0xffffffffu, t)",
    "lane number": "lane()",
}
"""Values that a thread t of a warp of 32 has."""

KERNEL = """\
__device__ unsigned lane() {{ unsigned n; asm volatile("mov.u32 %0, %laneid;" : "=r"(n)); return n; }}
__global__ void f(unsigned *out) {{
    unsigned t = threadIdx.x;
    unsigned value = {};
    out[t] = value;
}}
"""


def compiled(value: str, machine: str = "seed") -> Kernel:
    (kernel,) = compile_source(KERNEL.format(value), "f.cu", "cu", BUILTIN[machine], OPTIONS).kernels
    return kernel


@pytest.mark.parametrize("name", DEPENDENT)
def test_blocks_are_of_one_narrow_warp(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = compiled(DEPENDENT[name])
    assert kernel.max_threads == SEED.lanes
    warning = capfd.readouterr().err
    assert "f.cu:" in warning and "runs blocks of at most 4 threads on machine 'seed'" in warning
    (function,) = compile_to_ir(KERNEL.format(DEPENDENT[name]), "f.cu", "cu", OPTIONS).functions
    given = np.full(4, 0xFFFFFFFF, np.uint32).tobytes()
    memory = bytearray(given)
    interpret(function, [memory], (1, 1, 1), (4, 1, 1))
    outcome = run_vector(build_launch(SEED, kernel, (1, 1, 1), (4, 1, 1), [given]), 1000)
    assert outcome.fault is None
    assert outcome.buffers == (bytes(memory),)


def test_a_larger_block_is_refused() -> None:
    kernel = compiled(DEPENDENT["vote"])
    with pytest.raises(LaunchError, match="bound of 4, a warp of machine 'seed'"):
        build_launch(SEED, kernel, (1, 1, 1), (8, 1, 1), [bytes(32)])


@pytest.mark.parametrize("value", ["t", "__popc(__activemask()) > 0", "warpSize"])
def test_what_no_warp_decides_is_not_bound(value: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert compiled(value).max_threads == 0
    assert capfd.readouterr().err == ""


def test_warps_of_32_are_not_bound(capfd: pytest.CaptureFixture[str]) -> None:
    assert compiled(DEPENDENT["vote"], "default").max_threads == 0
    assert capfd.readouterr().err == ""
