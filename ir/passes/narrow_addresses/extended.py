"""Operations on extended words, which give extended words."""

from __future__ import annotations

from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, I32, I64
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.narrow_addresses.affine import low_word
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import is_op

BITWISE = ("and", "or", "xor")
SCALED = (*BITWISE, "select")

WORD_OPERATIONS: dict[str, dict[str, str]] = {
    **{op: {"zext": op, "sext": op} for op in (*BITWISE, "select", "phi", "umin", "umax")},
    "smin": {"zext": "umin", "sext": "smin"},
    "smax": {"zext": "umax", "sext": "smax"},
    "lshr": {"zext": "lshr"},
    "ashr": {"sext": "ashr"},
    "mul": {"zext": "mul"},
    "udiv": {"zext": "udiv"},
    "urem": {"zext": "urem"},
    "sdiv": {"sext": "sdiv"},
    "srem": {"sext": "srem"},
}
"""For an operation on 64 bits the one on words, by how the words are extended before and after it."""

DIVISIONS = ("udiv", "urem", "sdiv", "srem")


def narrow_extended(function: Function) -> bool:
    """Computes on words where operands and result of a 64-bit operation are extended words."""
    changed = False
    for instruction in function.instructions:
        value = narrowed(instruction) if instruction.type is I64 and instruction.parent else None
        if value is None:
            continue
        if isinstance(value, Instruction):
            value.name, instruction.name = instruction.name, ""
        instruction.replace_all_uses_with(value)
        instruction.erase()
        changed = True
    return changed


def narrowed(instruction: Instruction) -> Value | None:
    """The extension, times a power of two where that is common to the operands, of an operation on words."""
    kinds = WORD_OPERATIONS.get(instruction.op, {})
    values = numbers_of(instruction)
    if instruction.op in DIVISIONS and not _divides_alike(instruction.operands[1]):
        return None
    if instruction.op in ("mul", "and") and _has_constant(values):
        return None
    if instruction.op == "mul" and possible_ones(instruction) >> 32:
        return None
    places = _common_zeros(values) if instruction.op in SCALED else 0
    inner = [_without_factor(value, places) for value in values]
    for kind in kinds:
        if all(value is instruction or is_extended(value, kind) for value in inner):
            word = _on_words(instruction, kinds[kind], inner)
            return _rebuilt(instruction, kind, word, places)
    return None


def numbers_of(instruction: Instruction) -> tuple[Value, ...]:
    """The operands but for a condition."""
    return tuple(operand for operand in instruction.operands if operand.type is not I1)


def _has_constant(values: tuple[Value, ...]) -> bool:
    """Whether an operand is a constant: a multiple or a mask is better left to the scale of an address."""
    return any(isinstance(value, Constant) for value in values)


def _divides_alike(divisor: Value) -> bool:
    """Whether a division of words by it never differs from one of 64 bits: not by 0, nor the least by -1."""
    return isinstance(divisor, Constant) and divisor.signed not in (0, -1)


def is_extended(value: Value, kind: str) -> bool:
    """Whether a number of 64 bits is what its low word is extended by `kind`."""
    if possible_ones(value) >> (32 if kind == "zext" else 31) == 0:
        return True
    if kind == "zext":
        return False
    if isinstance(value, Constant):
        return -(1 << 31) <= value.signed < 1 << 31
    cast = is_op(value, "sext")
    return cast is not None and cast.operands[0].type is I32


def _common_zeros(values: tuple[Value, ...]) -> int:
    """By how many places all operands are shifted up."""
    shifts = [_shift_of(value) for value in values]
    plain = [shift for value, shift in zip(values, shifts, strict=True) if not isinstance(value, Constant)]
    if not plain or len(set(plain)) > 1:
        return 0
    return plain[0] if min(shifts) >= plain[0] else 0


def _shift_of(value: Value) -> int:
    if isinstance(value, Constant):
        return 64 if value.value == 0 else (value.value & -value.value).bit_length() - 1
    factor = _power(value)
    return 0 if factor is None else factor.bit_length() - 1


def _power(value: Value) -> int | None:
    """The power of two that a product multiplies by."""
    product = is_op(value, "mul")
    factor = product.operands[1] if product else None
    return factor.value if isinstance(factor, Constant) and factor.value.bit_count() == 1 else None


def _without_factor(value: Value, places: int) -> Value:
    if places == 0:
        return value
    if isinstance(value, Constant):
        return constant(I64, value.signed >> places)
    assert isinstance(value, Instruction)
    return value.operands[0]


def _on_words(instruction: Instruction, op: str, values: list[Value]) -> Value:
    """The operation on the low words."""
    if instruction.op == "phi":
        return _phi_of_words(instruction)
    builder = Builder().before(instruction)
    condition = [operand for operand in instruction.operands if operand.type is I1]
    return builder.emit(op, *condition, *(low_word(builder, value) for value in values))


def _phi_of_words(phi: Instruction) -> Instruction:
    word = phi.block.insert(0, Instruction("phi", I32, (), {"blocks": ()}, phi.loc))
    for value, source in phi.incoming:
        builder = Builder(loc=phi.loc).before(source.terminator)
        word.add_incoming(word if value is phi else low_word(builder, value), source)
    return word


def _rebuilt(instruction: Instruction, kind: str, word: Value, places: int) -> Value:
    """The number of 64 bits that the word stands for."""
    builder = Builder().before(instruction)
    if instruction.op == "phi":
        builder.at_start(instruction.block)
    extended = builder.emit(kind, word, type=I64)
    return builder.emit("mul", extended, constant(I64, 1 << places)) if places else extended
