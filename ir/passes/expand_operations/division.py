"""Division of words, without a branch: a reciprocal of the divisor, the quotient by it, and a correction.

`rcp` gives z <= 2^32 / d to about 7 bits, and each step of Newton's method, z + floor(z * (2^32 - z * d) /
2^32), doubles them, never going above 2^32 / d. The quotient floor(n * z / 2^32) is floor(n / d) or one less
where n * (2^32 / d - z) <= 2^32. Over all divisors d that holds for the dividends n up to EXACT_UP_TO (a test
goes through divisors of all lengths); two steps leave z at most one below floor((2^32 - 1) / d), and a last
comparison makes it equal to that, which serves all dividends.
"""

from __future__ import annotations

from qgpu.ir.core.builder import constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64, IntType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.expand_operations.constant_division import quotient_by_constant
from qgpu.ir.passes.expand_operations.wide_division import divide_wide
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import is_op, number

EXACT_UP_TO = (1 << 8, 1 << 16, 1 << 31)
"""Dividends for which `rcp` alone, with one step of Newton's method, and with two is near enough."""


def reciprocal(emit: Emitter, divisor: Value, negated: Value, largest: int) -> Value:
    """A reciprocal of a divisor that is near enough for dividends up to `largest`."""
    near = emit.op("rcp", divisor)
    for limit in EXACT_UP_TO[:-1]:
        if largest <= limit:
            return near
        near = emit.add(emit.op("mulhi_u", near, emit.mul(near, negated)), near)
    if largest <= EXACT_UP_TO[-1]:
        return near
    more = emit.icmp("ugt", emit.mul(near, negated), divisor)
    return emit.add(near, emit.op("zext", more, type=I32))


def divide_words(emit: Emitter, dividend: Value, divisor: Value, largest: int) -> tuple[Value, Value]:
    """Unsigned quotient and remainder of words, the dividend at most `largest`; the divisor is not 0."""
    negated = emit.sub(constant(I32, 0), divisor)
    quotient = emit.op("mulhi_u", dividend, reciprocal(emit, divisor, negated, largest))
    rest = emit.add(emit.mul(quotient, negated), dividend)
    more = emit.op("zext", emit.icmp("uge", rest, divisor), type=I32)
    return emit.add(quotient, more), emit.op("umin", rest, emit.add(rest, negated))


def expand_division(emit: Emitter, division: Instruction) -> Value:
    """udiv, urem, sdiv and srem of 32 and 64 bits."""
    dividend, divisor = division.operands
    signed, remainder = division.op.startswith("s"), division.op.endswith("rem")
    type_ = division.type
    assert isinstance(type_, IntType)
    if number(divisor) == 0:
        return constant(type_, -1)
    if isinstance(divisor, Constant):
        quotient = quotient_by_constant(emit, dividend, divisor.signed if signed else divisor.value, signed)
        return _remainder(emit, dividend, quotient, divisor, signed) if remainder else quotient
    magnitude = _magnitude if signed else _unchanged
    numbers = magnitude(emit, dividend), magnitude(emit, divisor)
    if type_ is I32:
        most = possible_ones(numbers[0])
        pair = divide_words(emit, *numbers, min(most, 1 << 31) if signed else most)
    else:
        pair = divide_wide(emit, *numbers)
    for other in _companions(division) if type_ is I64 else []:
        other.replace_all_uses_with(_finished(emit, other, pair))
        other.erase()
    return _finished(emit, division, pair)


def _remainder(emit: Emitter, dividend: Value, quotient: Value, divisor: Constant, signed: bool) -> Value:
    """What a quotient by a constant leaves, which a word holds where it holds the divisor."""
    magnitude = abs(divisor.signed) if signed else divisor.value
    if dividend.type is not I64 or magnitude >> (31 if signed else 32):
        return emit.sub(dividend, emit.mul(quotient, divisor))
    low = emit.sub(emit.low(dividend), emit.mul(emit.low(quotient), divisor.value & I32.mask))
    return emit.cast("sext", low, I64) if signed else emit.wide(low)


def _companions(division: Instruction) -> list[Instruction]:
    """The divisions of the same numbers that follow in the block: one loop is enough for all."""
    kinds = (f"{division.op[0]}div", f"{division.op[0]}rem")
    instructions = division.block.instructions
    later = instructions[instructions.index(division) + 1 :]
    return [i for i in later if i.op in kinds and i.operands == division.operands]


def _finished(emit: Emitter, division: Instruction, pair: tuple[Value, Value]) -> Value:
    """What a division gives, from quotient and remainder of the magnitudes where it is signed."""
    remainder = division.op.endswith("rem")
    dividend, divisor = division.operands
    result = pair[remainder]
    if division.op.startswith("s"):
        result = _with_sign(emit, result, dividend, divisor, remainder)
    if is_nonzero(divisor):
        return result
    return emit.select(emit.icmp("eq", divisor, 0), constant(divisor.type, -1), result)


def _with_sign(emit: Emitter, result: Value, dividend: Value, divisor: Value, remainder: bool) -> Value:
    """The quotient is negative where signs differ, the remainder where the dividend is."""
    source = dividend if remainder else emit.op("xor", dividend, divisor)
    if not _may_be_negative(source):
        return result
    sign = emit.ashr(source, width_of(source) - 1)
    return emit.sub(emit.op("xor", result, sign), sign)


def width_of(value: Value) -> int:
    assert isinstance(value.type, IntType)
    return value.type.width


def _may_be_negative(value: Value) -> bool:
    return bool(possible_ones(value) >> width_of(value) - 1)


def _unchanged(emit: Emitter, value: Value) -> Value:
    return value


def _magnitude(emit: Emitter, value: Value) -> Value:
    """The absolute value; that of the least number, as an unsigned one, is right too."""
    if not _may_be_negative(value):
        return value
    return emit.op("smax", value, emit.sub(constant(value.type, 0), value))


def is_nonzero(value: Value) -> bool:
    """Whether a divisor is plainly not 0."""
    if isinstance(value, Constant):
        return value.value != 0
    extension = is_op(value, "zext") or is_op(value, "sext")
    if extension:
        return is_nonzero(extension.operands[0])
    register = is_op(value, "sreg")
    if register:
        return register.attrs["name"].startswith(("ntid", "nctaid"))
    joined = is_op(value, "or")
    return joined is not None and any(map(is_nonzero, joined.operands))
