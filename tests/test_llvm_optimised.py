"""LLVM IR that LLVM's own passes have optimised, as clang does at -O1 to -O3, leaves the same memory."""

from __future__ import annotations

import copy
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

import test_files
from numba_kernels import CASES, Case, arguments, data_of, llvm_ir
from qgpu.ir.interpreter import interpret
from qgpu.runtime.arguments import Buffer, parse_argument
from qgpu.runtime.ir_run import run_ir
from qgpu.toolchain.compile import compile_to_ir
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.llvm.reader import normal_form

LEVELS = (1, 3)
FILES = [case for case in test_files.CASES if case.file.suffix == ".ll" and case.verb == "expect"]


@cache
def _machine() -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu="sm_75", opt=3)


def optimised(text: str, level: int) -> str:
    """The module after LLVM's pipeline of an optimisation level for the target."""
    module = llvm.parse_assembly(normal_form(Source("k.ll", text)))
    builder = llvm.create_pass_builder(_machine(), llvm.create_pipeline_tuning_options(speed_level=level))
    builder.getModulePassManager().run(module, builder)
    return str(module)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_of_numba(case: Case, level: int) -> None:
    text = optimised(llvm_ir(case.kernel, case.args), level)
    (function,) = compile_to_ir(text, "k.ll", "ll").functions
    contents = [bytearray(a) if isinstance(a, bytes) else a for a in arguments(case.args)]
    interpret(function, contents, case.grid, case.block)
    args = copy.deepcopy(case.args)
    case.oracle(*args)
    wanted = [arg.tobytes() for arg in args if isinstance(arg, np.ndarray)]
    assert data_of(case.args, [bytes(c) for c in contents if isinstance(c, bytearray)]) == wanted


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", FILES, ids=test_files.name)
def test_files_of_llvm_ir(case: test_files.Case, level: int) -> None:
    text = optimised(case.file.read_text(encoding="utf-8"), level)
    (function,) = compile_to_ir(text, case.file.name, "ll").functions
    grid, block, *rest = case.launch.split()
    shared = int(rest.pop(0).removeprefix("shared=")) if rest[0].startswith("shared=") else 0
    after = run_ir(
        function,
        test_files.dimensions(grid),
        test_files.dimensions(block),
        [parse_argument(text) for text in rest],
        shared,
        output=print,
    )
    buffers = [argument.values.tolist() for argument in after if isinstance(argument, Buffer)]
    assert buffers == [eval(expression) for expression in case.wanted.split(" ; ")]
