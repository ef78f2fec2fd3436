"""File tests: tests/files/*.cu, each a kernel with launches and what they must leave in memory.

// launch: GRID BLOCK [shared=BYTES] ARGUMENT...   as `qgpu run` takes them
// expect: VALUES ; VALUES ...                     a Python expression for each buffer, in order
// fault: KIND thread X,Y,Z line NUMBER            instead, where the launch must stop
// error: TEXT                                     without a launch, where the kernel must be refused
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.reference.run import run_launch
from qgpu.runtime.arguments import DTYPES, Buffer, check_arguments, launch_argument, parse_argument
from qgpu.toolchain.compile import compile_source
from qgpu.toolchain.diagnostics import DiagnosticError

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
    for file in sorted([*HERE.glob("*.cu"), *HERE.glob("*.ptx")]):
        launch = ""
        for verb, text in re.findall(
            r"^// (launch|expect|fault|error): (.*)$", file.read_text(), re.MULTILINE
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
    if case.verb == "fault":
        assert trace.fault is not None
        thread = ",".join(map(str, trace.fault.thread))
        assert f"{trace.fault.kind} thread {thread} line {trace.fault.line.line}" == case.wanted
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


@pytest.mark.parametrize("case", [case for case in CASES if case.verb == "error"], ids=name)
def test_refusal(case: Case) -> None:
    with pytest.raises(DiagnosticError) as raised:
        compiled(case.file)
    assert case.wanted in str(raised.value)


def test_every_file_has_a_case() -> None:
    assert {case.file for case in CASES} == set(HERE.iterdir())
