"""Advanced mode: the model writes a CUDA kernel and its launch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.follow import Fault
from qgpu.backends.machine.host import Dim3, Launch, LaunchError, build_launch
from qgpu.backends.machine.program import Kernel, SourceLine
from qgpu.runtime.arguments import (
    Argument,
    ArgumentError,
    Buffer,
    check_arguments,
    files_of,
    launch_argument,
    updated,
)
from qgpu.runtime.chat.tool import ToolAnswer, ToolError, check_names, declaration, short, text_argument
from qgpu.runtime.chat.untrusted import FILE, compile_untrusted
from qgpu.runtime.engine import EngineError
from qgpu.runtime.expressions.launcher import LaunchRecord, RunLaunch
from qgpu.runtime.launch import Outcome
from qgpu.runtime.results import argument_lines, fault_diagnostic
from qgpu.runtime.structures import parse_given, spread
from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.diagnostics import DiagnosticError, Source, render

MAX_ARGUMENTS = 32
"""Arguments of a kernel."""

_EXAMPLE = '["i32[]:1,2,3", "i32[3]", "i32:3"]'
_DESCRIPTION = (
    "Compiles a CUDA kernel of whole numbers and launches it on a GPU; the answer has every buffer after the "
    "launch. No floating point, no #include beyond CUDA's own headers, one kernel, no main."
)
_INSTRUCTIONS = (
    "You have a tool, cuda, that compiles and runs a CUDA kernel. Use it for every calculation: write a "
    "kernel and its launch, never compute in your head. If it does not compile or stops, mend it and call "
    "again. Then answer the question in one short sentence that has the result in it."
)
_PROPERTIES = {
    "source": {"type": "string", "description": "CUDA C++ source with one __global__ function."},
    "grid": {"type": "string", "description": "Thread blocks: X, X,Y or X,Y,Z. Default: 1."},
    "block": {"type": "string", "description": "Threads of a block: X, X,Y or X,Y,Z."},
    "args": {
        "type": "array",
        "items": {"type": "string"},
        "description": "One for each parameter, in order: i32:5 is a number, i32[]:1,2,3 a buffer with "
        f"these elements, i32[16] a buffer of zeros; also i8 u8 i16 u16 u32 i64 u64. Example: {_EXAMPLE}",
    },
}


class KernelTool:
    """Compiles kernels for a machine and launches them."""

    instructions = _INSTRUCTIONS
    declaration = declaration(_DESCRIPTION, _PROPERTIES, ["source", "block", "args"])

    def __init__(self, machine: MachineDescription, run: RunLaunch) -> None:
        self._machine = machine
        self._run = run

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """What a kernel prints, and its buffers after the launch, a line each."""
        check_names(arguments, *_PROPERTIES)
        text = text_argument(arguments, "source")
        grid, block = _size(arguments, "grid", "1"), _size(arguments, "block", None)
        given = _arguments(arguments.get("args"))
        program = compile_untrusted(text, self._machine)
        if len(program.kernels) != 1:
            raise ToolError(f"the source has {len(program.kernels)} kernels: write one alone")
        try:
            (kernel,) = program.kernels
            values = spread(kernel, given)
            check_arguments(kernel, values)
            contents = [launch_argument(value) for value in values]
            launch = build_launch(self._machine, kernel, grid, block, contents)
        except (ArgumentError, LaunchError) as error:
            raise ToolError(readable(str(error))) from None
        except DiagnosticError as error:
            raise ToolError(str(error)) from None
        outcome = self._outcome(launch)
        record = (_record(outcome, values),)
        if outcome.fault is not None:
            raise ToolError(outcome.output + _fault_text(outcome.fault, Source(FILE, text)), record)
        try:
            shown = short(_shown(outcome, kernel, values), "let the kernel write less")
        except ToolError as error:
            raise ToolError(str(error), record) from None
        return ToolAnswer(shown, launches=record)

    def _outcome(self, launch: Launch) -> Outcome:
        try:
            return self._run(launch)
        except EngineError as error:
            if "has not ended" not in str(error):
                raise
            raise ToolError(f"{error}: is there a loop that does not end?") from None


def _size(arguments: Mapping[str, Any], name: str, default: str | None) -> Dim3:
    """A grid's or a thread block's size: a number, a list of them, or a text of them."""
    value = arguments.get(name, default)
    parts = value if isinstance(value, list) else str(value).strip("()[] ").split(",")
    try:
        numbers = [int(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    if not 1 <= len(numbers) <= 3 or not all(0 < number < 1 << 16 for number in numbers):
        raise ToolError(f"'{name}' is X, X,Y or X,Y,Z, each from 1 to 65535: not {value!r}")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def _arguments(given: Any) -> list[Any]:
    """The arguments of the launch, from a list, a list as JSON, or a text of one a line."""
    items = _listed(given) if isinstance(given, str) else given
    if not isinstance(items, list) or len(items) > MAX_ARGUMENTS:
        raise ToolError(f"'args' is a list of texts, one for each parameter: {_EXAMPLE}")
    specs = [_spec(item) for item in items]
    if files_of(specs):
        raise ToolError("an argument cannot be read from a file: write its elements, as i32[]:1,2,3")
    try:
        return [parse_given(spec) for spec in specs]
    except ArgumentError as error:
        raise ToolError(str(error)) from None


def _listed(text: str) -> Any:
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _spec(item: Any) -> str:
    """An argument as it is written; a plain number, and a list of them, are of 32 bits."""
    if isinstance(item, int) and not isinstance(item, bool):
        return f"i32:{item}"
    if isinstance(item, list):
        return "i32[]:" + ",".join(map(str, item))
    return str(item)


def _record(outcome: Outcome, values: Sequence[Argument]) -> LaunchRecord:
    shapes = tuple((len(value.values),) if isinstance(value, Buffer) else () for value in values)
    launch = outcome.launch
    return LaunchRecord(
        readable(launch.kernel.name),
        shapes,
        launch.grid,
        launch.block,
        len(launch.prompt),
        outcome.tokens,
        outcome.layer_passes,
        outcome.seconds,
    )


def _shown(outcome: Outcome, kernel: Kernel, values: Sequence[Argument]) -> str:
    after = [updated(*pair) for pair in zip(values, outcome.buffers, strict=True)]
    lines = zip(argument_lines(kernel, after), after, strict=True)
    return outcome.output + "\n".join(line for line, value in lines if isinstance(value, Buffer))


def _fault_text(fault: Fault, source: Source) -> str:
    """A fault with the line of the source; a name that the source gives is never opened as a file."""
    (found,) = fault_diagnostic(dataclasses.replace(fault, line=SourceLine())).diagnostics
    place = fault.line
    if place.file != source.name or not place.line:
        return render([found])
    return render([source.diagnostic(found.message, place.line, place.column, notes=found.notes)])
