"""Refusals: what the machine cannot do, as a diagnostic at the instruction's place in the source."""

from __future__ import annotations

from qgpu.ir import Function, Instruction, IntType, Location
from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, note

_BY_NAME = {
    "a sum": ("add",),
    "a difference": ("sub", "ptrdiff"),
    "a product": ("mul",),
    "the high half of a product": ("mulhi_s", "mulhi_u"),
    "a division": ("sdiv", "udiv"),
    "a remainder": ("srem", "urem"),
    "a bitwise operation": ("and", "or", "xor", "not", "lop3"),
    "a shift": ("shl", "lshr", "ashr", "shf"),
    "a reciprocal": ("rcp",),
    "a minimum or maximum": ("smin", "smax", "umin", "umax"),
    "a count of bits": ("popc", "clz"),
    "a reversal of bits": ("brev",),
    "a bit field": ("bfe_u", "bfe_s", "bfi"),
    "a permutation of bytes": ("prmt",),
    "a comparison": ("icmp",),
    "a selection": ("select",),
    "a conversion": ("sext", "zext", "trunc", "high", "pack", "ptrcast", "ptrtoint"),
    "a parameter": ("param",),
    "a special register": ("sreg",),
    "an address": ("ptradd", "addrof"),
    "a load": ("load",),
    "a store": ("store",),
    "an atomic operation": ("atomicrmw", "cmpxchg"),
    "an exchange between lanes": ("shuffle", "ballot", "match", "redux"),
    "a barrier": ("barrier", "arrive", "barrier_reduce"),
    "a printf": ("printf",),
    "a value": ("undef", "phi", "slot", "set", "get"),
    "a branch": ("br", "condbr", "brany", "ret", "trap"),
}
NAMES = {opcode: name for name, opcodes in _BY_NAME.items() for opcode in opcodes}
"""What every opcode is to a user, by opcode."""


def refuse(message: str, loc: Location | None, *notes: str) -> DiagnosticError:
    """An error at a place of the source; the notes say what would be needed.

    Functions are named in it as the source has them.
    """
    return DiagnosticError(
        Diagnostic(
            message=readable(message),
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
    """What an instruction is called in a diagnostic, such as `a division of 32-bit integers`."""
    name = NAMES[instruction.op]
    operands = [operand.type for operand in instruction.operands if isinstance(operand.type, IntType)]
    type_ = operands[-1] if operands else instruction.attrs.get("type", instruction.type)
    return f"{name} of {_kind(type_)}"


def _kind(type_: object) -> str:
    return f"{type_.width}-bit integers" if isinstance(type_, IntType) else "pointers"


def first_place(function: Function) -> Location | None:
    """The first place of the source that a function's instructions name."""
    return next((instruction.loc for instruction in function.instructions if instruction.loc), None)
