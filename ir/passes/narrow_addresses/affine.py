"""Affine forms: 64-bit offsets as sums of multiples of extended words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import to_signed
from qgpu.ir.core.types import I32, I64, IntType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.simplify.known_bits import possible_ones

Key = tuple[int, bool]


@dataclass
class Affine:
    """An i64 as a sum modulo 2^64: `disp` plus, for each term, ext(value) * scale.

    Terms are keyed by the value and by whether it is sign-extended, in the order they were found. A value
    of 64 bits is a term of its own.
    """

    disp: int = 0
    terms: dict[Key, tuple[Value, bool, int]] = field(default_factory=dict)

    def add(self, value: Value, signed: bool, scale: int) -> None:
        key = (id(value), signed)
        total = to_signed(self.terms[key][2] + scale if key in self.terms else scale, 64)
        self.terms[key] = (value, signed, total)
        if total == 0:
            del self.terms[key]

    def add_constant(self, number: int) -> None:
        self.disp = to_signed(self.disp + number, 64)


def decompose(value: Value, scale: int, into: Affine) -> None:
    """Adds value * scale to a sum; exact modulo 2^64, so that no bound on the operands is needed."""
    if isinstance(value, Constant):
        into.add_constant(value.signed * scale)
        return
    rule = _LINEAR.get(value.op) if isinstance(value, Instruction) and value.type is I64 else None
    if rule is None or not isinstance(value, Instruction) or not rule(value, scale, into):
        into.add(value, True, scale)


def _decompose_add(value: Instruction, scale: int, into: Affine) -> bool:
    decompose(value.operands[0], scale, into)
    decompose(value.operands[1], scale, into)
    return True


def _decompose_sub(value: Instruction, scale: int, into: Affine) -> bool:
    decompose(value.operands[0], scale, into)
    decompose(value.operands[1], -scale, into)
    return True


def _decompose_mul(value: Instruction, scale: int, into: Affine) -> bool:
    for factor, other in (value.operands, value.operands[::-1]):
        if isinstance(factor, Constant):
            decompose(other, scale * factor.signed, into)
            return True
    return False


def _decompose_shl(value: Instruction, scale: int, into: Affine) -> bool:
    amount = value.operands[1]
    if not isinstance(amount, Constant):
        return False
    if amount.value < 64:
        decompose(value.operands[0], scale << amount.value, into)
    return True


def _decompose_extension(value: Instruction, scale: int, into: Affine) -> bool:
    narrow = value.operands[0]
    if isinstance(narrow, Constant):
        into.add_constant((narrow.signed if value.op == "sext" else narrow.value) * scale)
        return True
    if narrow.type is not I32:
        narrow = Builder().before(value).emit(value.op, narrow, type=I32)
    into.add(narrow, value.op == "sext" or possible_ones(narrow) >> 31 == 0, scale)
    return True


def _decompose_and(value: Instruction, scale: int, into: Affine) -> bool:
    """A constant mask below 2^32 keeps low bits alone, so that 32 bits of the other operand suffice.

    Of a multiple of 2^k, (x * 2^k) & mask = (x & (mask >> k)) * 2^k, whatever of x * 2^k is cut off above.
    """
    for other, mask in (value.operands, value.operands[::-1]):
        if isinstance(mask, Constant) and mask.value < 1 << 32:
            builder = Builder().before(value)
            index, unit = _without_power_of_two(low_word(builder, other))
            kept = constant(I32, mask.value // unit)
            into.add(builder.emit("and", index, kept), kept.signed >= 0, scale * unit)
            return True
    return False


LOW_BITS = ("add", "sub", "mul", "and", "or", "xor")


def low_word(builder: Builder, value: Value) -> Value:
    """The low 32 bits of an i64, computed in 32 bits as far as possible."""
    if isinstance(value, Constant):
        return constant(I32, value.value)
    if isinstance(value, Instruction) and value.op in ("sext", "zext"):
        return resize(builder, value.operands[0], I32, value.op)
    if isinstance(value, Instruction) and value.op in LOW_BITS:
        return builder.emit(value.op, *(low_word(builder, operand) for operand in value.operands))
    return builder.emit("trunc", value, type=I32)


def _without_power_of_two(value: Value) -> tuple[Value, int]:
    """An i32 as another times a power of two, modulo 2^32."""
    if isinstance(value, Instruction) and value.op == "mul":
        factor = value.operands[1]
        if isinstance(factor, Constant) and factor.value.bit_count() == 1:
            return value.operands[0], factor.value
    return value, 1


def resize(builder: Builder, value: Value, type_: IntType, extension: str) -> Value:
    """A value brought to a width, extended as given or truncated."""
    assert isinstance(value.type, IntType)
    op = extension if value.type.width < type_.width else "trunc"
    return builder.cast(op, value, type_)


_LINEAR: dict[str, Callable[[Instruction, int, Affine], bool]] = {
    "add": _decompose_add,
    "sub": _decompose_sub,
    "mul": _decompose_mul,
    "shl": _decompose_shl,
    "and": _decompose_and,
    "sext": _decompose_extension,
    "zext": _decompose_extension,
}
