"""Refusals: what the machine cannot do, as a diagnostic at the instruction's place in the source."""

from __future__ import annotations

from qgpu.ir import Function, Instruction, Location
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, note


def refuse(message: str, loc: Location | None, *notes: str) -> DiagnosticError:
    """An error at a place of the source; the notes say what would be needed."""
    return DiagnosticError(
        Diagnostic(
            message=message,
            file=loc.file if loc else None,
            line=loc.line if loc else 0,
            column=loc.column if loc else 0,
            notes=tuple(map(note, notes)),
        )
    )


def refuse_instruction(instruction: Instruction, needs: str) -> DiagnosticError:
    """An error about an instruction that no machine operation, or short sequence of them, can do."""
    return refuse(f"cannot generate code for {described(instruction)}: {needs}", instruction.loc)


def described(instruction: Instruction) -> str:
    """What an instruction is called in a diagnostic, such as `'udiv' on i32` or `'atomicrmw and'`."""
    from qgpu.ir import IntType

    inline = "".join(f" {instruction.attrs[name]}" for name in instruction.info.inline_attrs)
    type_ = instruction.operands[0].type if instruction.operands else instruction.type
    return f"'{instruction.op}{inline}'" + (f" on {type_}" if isinstance(type_, IntType) else "")


def first_place(function: Function) -> Location | None:
    """The first place of the source that a function's instructions name."""
    return next((instruction.loc for instruction in function.instructions if instruction.loc), None)
