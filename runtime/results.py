"""What a launch's outcome looks like: lines for people, one object for programs, a diagnostic for a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu.backends.machine.follow import UNINITIALISED, Fault, Step
from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.ir.interpreter.faults import FAULTS as IR_FAULTS
from qgpu.runtime.arguments import Argument, argument_values
from qgpu.runtime.hints import fault_hints
from qgpu.runtime.launch import Outcome
from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, note

if TYPE_CHECKING:
    from qgpu.runtime.verify import Verification

_MEANINGS = {
    "out-of-bounds": "access outside its buffer",
    "misaligned": "access that is not aligned to its width",
    "barrier": "barrier that not every thread of the block reaches",
    "trap": "trap",
    "assert": "assertion failed",
    UNINITIALISED: IR_FAULTS[UNINITIALISED],
}
"""What a fault's kind means, for its diagnostic."""


def parameter_label(kernel: Kernel, parameter: Parameter) -> str:
    """What a parameter is called in results: its name, or `param_2` where PTX calls it `KERNEL_param_2`."""
    return parameter.name.removeprefix(f"{kernel.name}_")


def argument_lines(kernel: Kernel, arguments: Sequence[Argument]) -> Iterator[str]:
    """One line an argument: `c = [5, 7, 9]`."""
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        yield f"{parameter_label(kernel, parameter)} = {argument_values(argument)}"


def outcome_object(outcome: Outcome, arguments: Sequence[Argument]) -> dict[str, Any]:
    """The outcome as plain data; `args` is None after a fault."""
    return {
        "args": None if outcome.fault else [argument_values(argument) for argument in arguments],
        "prompt_tokens": len(outcome.launch.prompt),
        "generated_tokens": outcome.tokens,
        "compiled_layers": outcome.layers,
        "layer_passes": outcome.layer_passes,
        "tokens_per_second": round(outcome.tokens_per_second, 3),
        "checked": outcome.checked or None,
        "output": outcome.output,
        "fault": None if outcome.fault is None else _fault_object(outcome.fault),
    }


def _fault_object(fault: Fault) -> dict[str, Any]:
    return {
        "kind": fault.kind,
        "thread": list(fault.thread),
        "block": None if fault.block is None else list(fault.block),
        "file": fault.line.file,
        "line": fault.line.line,
        "column": fault.line.column,
        "message": fault.message,
    }


def summary(outcome: Outcome) -> str:
    """One line on what a launch took."""
    generated = f"{outcome.tokens} generated"
    if outcome.layers is not None:
        generated += f" x {outcome.layers} layers = {outcome.layer_passes} layer passes"
    parts = [
        f"{len(outcome.launch.prompt)} prompt tokens in {outcome.prompt_seconds:.1f} s",
        generated,
        f"{outcome.tokens_per_second:.1f} tokens/s",
    ]
    if outcome.checked:
        parts.append("every token equal to the reference")
    return ", ".join(parts)


def verification_line(verification: Verification) -> str:
    """One line on what the stock model was found to agree with."""
    state = verification.state
    parts = [
        f"the stock model's argmax is each of {verification.answers} tokens",
        "final state not compared: the engine computes in float32" if state is None else str(state),
        f"{verification.reference_seconds:.1f} s to propose, {verification.model_seconds:.1f} s to check",
    ]
    return ", ".join(parts)


def step_line(number: int, step: Step, kernel: Kernel) -> str:
    """One generated token: its number, its text, where it was made, and that block's source line."""
    block = step.place.block
    line = kernel.lines[block] if block < len(kernel.lines) else None
    source = f"  # {line.file}:{line.line}" if line is not None and line.line else ""
    return f"{number:>6}  {step}{source}"


def fault_diagnostic(fault: Fault) -> DiagnosticError:
    """The diagnostic of a fault, with the source line where its file can be read."""
    block = "" if fault.block is None else f" of block {_triple(fault.block)}"
    where = note(f"in thread {_triple(fault.thread)}{block}")
    more = f": {readable(fault.message)}" if fault.message else ""
    message = f"{fault.kind}: {_MEANINGS[fault.kind]}{more}"
    place = fault.line
    notes = (where, *map(note, fault_hints(fault.kind)))
    return source_diagnostic(message, place.file, place.line, place.column, notes)


def source_diagnostic(
    message: str, file: str, line: int, column: int, notes: tuple[Diagnostic, ...]
) -> DiagnosticError:
    """A diagnostic at a place, with its line where the file can be read; line 0 is not known."""
    if not line:
        return DiagnosticError(Diagnostic(message=message, notes=notes))
    return DiagnosticError(Source(file, _text(file)).diagnostic(message, line, column, notes=notes))


def _triple(numbers: tuple[int, int, int]) -> str:
    return f"({', '.join(map(str, numbers))})"


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
