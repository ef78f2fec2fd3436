"""Run a kernel's IR as the front end makes it: what the kernel means, whatever machine it may fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qgpu.backends.machine.host import Dim3, LaunchError
from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.ir import Function, IntType
from qgpu.ir.interpreter import FAULTS, Fault, interpret
from qgpu.runtime.arguments import Argument, Buffer, check_arguments, updated
from qgpu.runtime.hints import fault_hints
from qgpu.runtime.results import source_diagnostic
from qgpu.toolchain.diagnostics import DiagnosticError, note


def run_ir(
    function: Function,
    grid: Dim3,
    block: Dim3,
    arguments: Sequence[Argument],
    shared_bytes: int,
    output: Callable[[str], object],
) -> list[Argument]:
    """Run a launch; the arguments after it. `output` is called with the text of each printf.

    Raises:
        ArgumentError: an argument does not fit its parameter.
        LaunchError: sizes that are none.
        Fault: the launch stopped.
    """
    check_arguments(signature(function), arguments)
    for name, size in (("grid", grid), ("block", block)):
        if min(size) < 1:
            raise LaunchError(f"{name} {','.join(map(str, size))}: each of x, y, z must be at least 1")
    contents = [
        bytearray(argument.values.tobytes()) if isinstance(argument, Buffer) else argument.value
        for argument in arguments
    ]
    interpret(function, contents, grid, block, shared_bytes=shared_bytes, output=output)
    return [
        updated(argument, bytes(content) if isinstance(content, bytearray) else None)
        for argument, content in zip(arguments, contents, strict=True)
    ]


def signature(function: Function) -> Kernel:
    """A function's name and parameters, as those of a kernel without code."""
    parameters = tuple(
        Parameter(
            argument.name,
            f"u{argument.type.width}" if isinstance(argument.type, IntType) else "void",
            not isinstance(argument.type, IntType),
        )
        for argument in function.args
    )
    return Kernel(function.name, parameters, (), (), (), registers=0, predicates=0, warp_stride=0)


def ir_fault_diagnostic(fault: Fault, block: Dim3) -> DiagnosticError:
    """The diagnostic of a fault of a launch, with the source line where its file can be read."""
    message = f"{fault.kind}: {FAULTS[fault.kind]}: {fault.reason}"
    notes = ()
    if fault.thread is not None:
        x, y, _ = block
        thread = (fault.thread % x, fault.thread // x % y, fault.thread // (x * y))
        notes = (note(f"in thread {thread} of block {fault.thread_block}"),)
    notes += tuple(map(note, fault_hints(fault.kind)))
    place = fault.instruction.loc if fault.instruction else None
    if place is None:
        return source_diagnostic(message, "", 0, 0, notes)
    return source_diagnostic(message, place.file, place.line, place.column, notes)
