"""Arithmetic on 64 bits by words: sums with carries, products, shifts, comparisons, casts."""

from __future__ import annotations

from collections.abc import Callable

from qgpu.ir.core.builder import constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, I32
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import is_op, number

Words = tuple[Value, Value]
"""The low and the high word."""


def words(emit: Emitter, value: Value) -> Words:
    return emit.low(value), emit.high(value)


def is_sign_extended(pair: Words) -> bool:
    """Whether the high word is the low one's sign, so that the low one is the number."""
    low, high = pair
    if isinstance(low, Constant) and isinstance(high, Constant):
        return high.signed == (-1 if low.signed < 0 else 0)
    if number(high) == 0:
        return possible_ones(low) >> 31 == 0
    sign = is_op(high, "ashr")
    return sign is not None and sign.operands[0] is low and number(sign.operands[1]) == 31


def split_add(emit: Emitter, add: Instruction) -> Value:
    (a0, a1), (b0, b1) = (words(emit, operand) for operand in add.operands)
    low = emit.add(a0, b0)
    if number(b0) == 0 or number(a0) == 0 or not (possible_ones(a0) + possible_ones(b0)) >> 32:
        return emit.pack(low, emit.add(a1, b1))
    carry = emit.icmp("ult", low, a0)
    return emit.pack(low, emit.add(emit.add(a1, b1), emit.op("zext", carry, type=I32)))


def split_sub(emit: Emitter, sub: Instruction) -> Value:
    (a0, a1), (b0, b1) = (words(emit, operand) for operand in sub.operands)
    low, high = emit.sub(a0, b0), emit.sub(a1, b1)
    if number(b0) == 0:
        return emit.pack(low, high)
    borrow = emit.icmp("ult", a0, b0)
    return emit.pack(low, emit.add(high, emit.op("sext", borrow, type=I32)))


def split_mul(emit: Emitter, mul: Instruction) -> Value:
    """Three products and a high one; of extended words that high product alone."""
    for operand, other in (mul.operands, mul.operands[::-1]):
        factor = number(other)
        if factor is not None and factor.bit_count() == 1:
            return shifted_left(emit, words(emit, operand), factor.bit_length() - 1)
    a, b = (words(emit, operand) for operand in mul.operands)
    low = emit.mul(a[0], b[0])
    if is_sign_extended(a) and is_sign_extended(b):
        return emit.pack(low, emit.op("mulhi_s", a[0], b[0]))
    high = emit.op("mulhi_u", a[0], b[0])
    for (factor, _), (_, other) in ((a, b), (b, a)):
        high = emit.add(emit.mul(factor, other), high)
    return emit.pack(low, high)


def split_bitwise(emit: Emitter, instruction: Instruction) -> Value:
    pairs = [words(emit, operand) for operand in instruction.operands]
    low, high = (emit.op(instruction.op, *parts) for parts in zip(*pairs, strict=True))
    return emit.pack(low, high)


def split_shift(emit: Emitter, shift: Instruction) -> Value:
    value, amount = (words(emit, operand) for operand in shift.operands)
    known = number(shift.operands[1])
    if known is not None:
        return BY_CONSTANT[shift.op](emit, value, min(known, 64))
    places = amount[0]
    if number(amount[1]) != 0:
        places = emit.select(emit.icmp("eq", amount[1], 0), places, 64)
    return BY_AMOUNT[shift.op](emit, value, places)


def shifted_left(emit: Emitter, value: Words, places: int) -> Value:
    low = value[0]
    if places >= 32:
        return emit.pack(0, emit.shl(low, places - 32))
    return emit.pack(emit.shl(low, places), _between(emit, value, 32 - places))


def shifted_right(emit: Emitter, value: Words, places: int) -> Value:
    high = value[1]
    if places >= 32:
        return emit.pack(emit.lshr(high, places - 32), 0)
    return emit.pack(_between(emit, value, places), emit.lshr(high, places))


def shifted_right_signed(emit: Emitter, value: Words, places: int) -> Value:
    high = value[1]
    if places >= 32:
        return emit.pack(emit.ashr(high, places - 32), emit.ashr(high, 31))
    return emit.pack(_between(emit, value, places), emit.ashr(high, places))


def _between(emit: Emitter, value: Words, places: int) -> Value:
    """The word from a place on: one of both, a shift of one where the other is 0, or part of each."""
    low, high = value
    if places in (0, 32):
        return high if places else low
    if number(high) == 0:
        return emit.lshr(low, places)
    return emit.shl(high, 32 - places) if number(low) == 0 else emit.op("shf", low, high, places)


def _left_by(emit: Emitter, value: Words, places: Value) -> Value:
    """The high word takes what the low one loses up to 32 places, and goes on from there."""
    low, high = value
    near = emit.sub(constant(I32, 32), emit.op("umin", places, 32))
    moved = emit.op("shf", low, high, near)
    return emit.pack(emit.shl(low, places), emit.shl(moved, _beyond(emit, places)))


def _right_by(emit: Emitter, value: Words, places: Value) -> Value:
    low, high = value
    moved = emit.op("shf", low, high, places)
    return emit.pack(emit.lshr(moved, _beyond(emit, places)), emit.lshr(high, places))


def _right_signed_by(emit: Emitter, value: Words, places: Value) -> Value:
    low, high = value
    moved = emit.op("shf", low, high, places)
    return emit.pack(emit.ashr(moved, _beyond(emit, places)), emit.ashr(high, places))


def _beyond(emit: Emitter, places: Value) -> Value:
    """How many places above 32."""
    if possible_ones(places) < 32:
        return constant(I32, 0)
    return emit.add(emit.op("umax", places, 32), -32)


BY_CONSTANT: dict[str, Callable[[Emitter, Words, int], Value]] = {
    "shl": shifted_left,
    "lshr": shifted_right,
    "ashr": shifted_right_signed,
}
BY_AMOUNT: dict[str, Callable[[Emitter, Words, Value], Value]] = {
    "shl": _left_by,
    "lshr": _right_by,
    "ashr": _right_signed_by,
}


def split_icmp(emit: Emitter, icmp: Instruction) -> Value:
    a, b = (words(emit, operand) for operand in icmp.operands)
    return compared(emit, icmp.attrs["pred"], a, b)


def compared(emit: Emitter, predicate: str, a: Words, b: Words) -> Value:
    """The comparison of two numbers, by as few words as decide it."""
    same_high = a[1] is b[1] or (isinstance(a[1], Constant) and a[1] == b[1])
    if is_sign_extended(a) and is_sign_extended(b):
        return emit.icmp(predicate, a[0], b[0])
    if same_high:
        return emit.icmp(predicate.replace("s", "u", 1), a[0], b[0])
    if predicate in ("eq", "ne"):
        return _equality(emit, predicate, a, b)
    if number(b[0]) == 0 and predicate.endswith(("lt", "ge")):
        return emit.icmp(predicate, a[1], b[1])
    equal = emit.icmp("eq", a[1], b[1])
    by_low = emit.icmp("u" + predicate[1:], a[0], b[0])
    return emit.select(equal, by_low, emit.icmp(predicate[:2] + "t", a[1], b[1]))


def _equality(emit: Emitter, predicate: str, a: Words, b: Words) -> Value:
    if number(b[0]) == 0 and number(b[1]) == 0:
        return emit.icmp(predicate, emit.op("or", *a), 0)
    parts = [emit.icmp(predicate, x, y) for x, y in zip(a, b, strict=True)]
    return emit.op("and" if predicate == "eq" else "or", *parts)


def split_extremum(emit: Emitter, extremum: Instruction) -> Value:
    """Minimum and maximum, by a comparison."""
    a, b = (words(emit, operand) for operand in extremum.operands)
    predicate = extremum.op[0] + ("lt" if extremum.op.endswith("min") else "gt")
    return _chosen(emit, compared(emit, predicate, a, b), a, b)


def split_select(emit: Emitter, select: Instruction) -> Value:
    condition, *values = select.operands
    a, b = (words(emit, value) for value in values)
    return _chosen(emit, condition, a, b)


def _chosen(emit: Emitter, condition: Value, a: Words, b: Words) -> Value:
    low, high = (emit.select(condition, x, y) for x, y in zip(a, b, strict=True))
    return emit.pack(low, high)


def split_zext(emit: Emitter, cast: Instruction) -> Value:
    return emit.pack(emit.cast("zext", cast.operands[0], I32), 0)


def split_sext(emit: Emitter, cast: Instruction) -> Value:
    low = emit.cast("sext", cast.operands[0], I32)
    return emit.pack(low, low if cast.operands[0].type is I1 else emit.ashr(low, 31))


def split_trunc(emit: Emitter, cast: Instruction) -> Value:
    low = emit.low(cast.operands[0])
    return low if cast.type is I32 else emit.op("trunc", low, type=cast.type)


def split_high(emit: Emitter, high: Instruction) -> Value:
    return emit.high(high.operands[0])


def split_undef(emit: Emitter, undef: Instruction) -> Value:
    return emit.pack(emit.op("undef", type=I32), emit.op("undef", type=I32))


ARITHMETIC: dict[str, Callable[[Emitter, Instruction], Value]] = {
    "add": split_add,
    "sub": split_sub,
    "mul": split_mul,
    **dict.fromkeys(("and", "or", "xor", "not"), split_bitwise),
    **dict.fromkeys(("shl", "lshr", "ashr"), split_shift),
    **dict.fromkeys(("smin", "smax", "umin", "umax"), split_extremum),
    "icmp": split_icmp,
    "select": split_select,
    "zext": split_zext,
    "sext": split_sext,
    "trunc": split_trunc,
    "high": split_high,
    "undef": split_undef,
}
"""How operations on 64 bits are done by words; each gives what takes the instruction's place."""
