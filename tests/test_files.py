"""File tests: tests/files/*, each a kernel with launches and what they must leave in memory.

// launch: GRID BLOCK [shared=BYTES] ARGUMENT...   as `qgpu run` takes them
// expect: VALUES ; VALUES ...                     a Python expression for each buffer, in order
// fault: KIND thread X,Y,Z line NUMBER MESSAGE    instead, where the launch must stop
// error: TEXT                                     without a launch, where the kernel must be refused

Comments of LLVM IR begin with a semicolon.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.follow import UNINITIALISED, Fault
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.reference.run import run_launch
from qgpu.backends.reference.vector import run_blocks
from qgpu.ir.interpreter import Fault as IrFault
from qgpu.runtime.arguments import (
    DTYPES,
    Argument,
    Buffer,
    check_arguments,
    launch_argument,
    parse_argument,
)
from qgpu.runtime.ir_run import run_ir
from qgpu.toolchain.compile import CompileOptions, build_ir, compile_source
from qgpu.toolchain.diagnostics import DiagnosticError, Source

HERE = Path(__file__).parent / "files"
Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Case:
    """One launch of a file, or the refusal of its kernel."""

    file: Path
    number: int
    launch: str
    verb: str
    wanted: str


def cases() -> list[Case]:
    found: list[Case] = []
    for file in sorted([*HERE.glob("*.cu"), *HERE.glob("*.ptx"), *HERE.glob("*.ll")]):
        launch = ""
        for verb, text in re.findall(
            r"^(?://|;) (launch|expect|fault|error): (.*)$", file.read_text(), re.MULTILINE
        ):
            if verb == "launch":
                launch = text
            else:
                found.append(Case(file, len(found), launch, verb, text))
    return found


CASES = cases()


@cache
def compiled(file: Path) -> Kernel:
    text = file.read_text()
    return compile_source(text, file.name, file.suffix[1:], DEFAULT).kernels[0]


def dimensions(text: str) -> Dim3:
    sizes = [int(size) for size in text.split(",")]
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def name(case: Case) -> str:
    return f"{case.file.stem}-{case.launch.replace(' ', '-')[:40] or case.verb}"


@pytest.mark.parametrize("case", [case for case in CASES if case.verb != "error"], ids=name)
def test_launch(case: Case) -> None:
    kernel = compiled(case.file)
    grid, block, *rest = case.launch.split()
    shared = int(rest.pop(0).removeprefix("shared=")) if rest[0].startswith("shared=") else 0
    arguments = [parse_argument(text) for text in rest]
    check_arguments(kernel, arguments)
    contents = [launch_argument(argument) for argument in arguments]
    launch = build_launch(DEFAULT, kernel, dimensions(grid), dimensions(block), contents, shared)
    trace = run_launch(launch, 200_000)
    result = run_blocks(launch, 200_000)
    assert (result.fault, result.tokens) == (trace.fault, len(trace.generated))
    assert result.memory.tolist() == list(trace.memory)
    if case.verb == "fault":
        assert trace.fault is not None
        assert fault_text(trace.fault) == case.wanted
        if trace.fault.kind == UNINITIALISED:
            assert ir_fault_text(case, arguments, shared) == case.wanted
        return
    assert trace.fault is None
    regions = [
        (argument.type, region)
        for argument, region in zip(arguments, launch.buffers, strict=True)
        if isinstance(argument, Buffer) and region is not None
    ]
    expressions = case.wanted.split(" ; ")
    assert len(expressions) == len(regions)
    for (kind, region), expression in zip(regions, expressions, strict=True):
        values = np.frombuffer(trace.buffer(region), DTYPES[kind]).tolist()
        assert values == eval(expression)


def fault_text(fault: Fault) -> str:
    thread = ",".join(map(str, fault.thread))
    return f"{fault.kind} thread {thread} line {fault.line.line} {fault.message}".strip()


def ir_fault_text(case: Case, arguments: list[Argument], shared: int) -> str:
    """The same of the kernel's IR."""
    source = Source(case.file.name, case.file.read_text())
    (function,) = build_ir(source, case.file.suffix[1:], CompileOptions()).functions
    grid, block = (dimensions(text) for text in case.launch.split()[:2])
    with pytest.raises(IrFault) as raised:
        run_ir(function, grid, block, arguments, shared, output=print)
    fault = raised.value
    assert fault.thread is not None and fault.instruction is not None and fault.instruction.loc is not None
    x, y, _ = block
    thread = f"{fault.thread % x},{fault.thread // x % y},{fault.thread // (x * y)}"
    return f"{fault.kind} thread {thread} line {fault.instruction.loc.line} {fault.reason}"


@pytest.mark.parametrize("case", [case for case in CASES if case.verb == "error"], ids=name)
def test_refusal(case: Case) -> None:
    with pytest.raises(DiagnosticError) as raised:
        compiled(case.file)
    assert case.wanted in str(raised.value)


def test_every_file_has_a_case() -> None:
    assert {case.file for case in CASES} == set(HERE.iterdir())
