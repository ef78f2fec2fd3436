"""Kernels that numba compiled to LLVM IR leave the memory that numpy computes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from numba_kernels import CASES, Case, arguments, data_of, llvm_ir
from qgpu.backends.machine.description import LARGE
from qgpu.backends.machine.host import build_launch
from qgpu.backends.reference.vector import run_blocks
from qgpu.ir.interpreter import interpret
from qgpu.toolchain.compile import CompileOptions, compile_source, compile_to_ir
from qgpu.toolchain.cuda.names import kernel_name


def wanted(case: Case) -> list[bytes]:
    args = copy.deepcopy(case.args)
    case.oracle(*args)
    return [arg.tobytes() for arg in args if isinstance(arg, np.ndarray)]


def test_a_kernel_is_chosen_by_the_name_it_has_in_python() -> None:
    (case,) = [case for case in CASES if case.name == "gcd"]
    options = CompileOptions(kernels=("gcd",))
    module = compile_to_ir(llvm_ir(case.kernel, case.args), "k.ll", "ll", options)
    assert [kernel_name(function.name).own for function in module.functions] == ["gcd"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_memory_is_that_of_numpy(case: Case) -> None:
    text = llvm_ir(case.kernel, case.args)
    (function,) = compile_to_ir(text, f"{case.name}.ll", "ll").functions
    contents = [bytearray(a) if isinstance(a, bytes) else a for a in arguments(case.args)]
    interpret(function, contents, case.grid, case.block)
    buffers = [bytes(content) for content in contents if isinstance(content, bytearray)]
    assert data_of(case.args, buffers) == wanted(case)

    (code,) = compile_source(text, f"{case.name}.ll", "ll", LARGE).kernels
    args = arguments(case.args)
    launch = build_launch(LARGE, code, case.grid, case.block, args)
    result = run_blocks(launch, 5_000_000)
    assert result.fault is None, result.fault
    buffers = [result.buffer(region) if region is not None else b"" for region in launch.buffers]
    pointers = [
        buffer for buffer, a in zip(buffers, arguments(case.args), strict=True) if isinstance(a, bytes)
    ]
    assert data_of(case.args, pointers) == wanted(case)
