"""Division of words, without a branch: a reciprocal of 15 bits, and three digits of the quotient by it.

Let dn = d * 2^s with its highest bit set, and H = floor(dn / 2^16) + 1. `reciprocal` gives V with

    (1 - DEFICIENCY) * 2^46 / dn < V <= 2^30 / H <= 2^46 / dn        (a test goes through all H),

so floor(floor(r / 2^k) * V / 2^(46 - s - k)) is a lower bound q of r / d, and what it leaves is

    r - q * d < 2^k + r * DEFICIENCY + d.

With r < 2^32 and k = 15, 4, 0 that leaves less than 891,776 + d, 614 + d, and 2 d at last: one subtraction
is left to be made. The products stay below 2^32 wherever they count: where d has 22 bits or more for k = 4,
18 or more for k = 0, the shift is by 32 or more and the digit is 0, and 2 d is more than what was left.
"""

from __future__ import annotations

from qgpu.ir.core.builder import constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64, IntType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.expand_operations.constant_division import quotient_by_constant
from qgpu.ir.passes.expand_operations.counting import bit_length
from qgpu.ir.passes.expand_operations.wide_division import divide_wide
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import is_op, number

DEFICIENCY = 2e-4
"""How much less than 2^46 / dn the reciprocal may be, relative to it."""

_QUADRATIC = (round(420 / 99 * 2**29), round(576 / 99 * 2**28), round(256 / 99 * 2**12))
"""Coefficients of (420 - 576 u + 256 u^2) / 99, which is 1 / u for u in [1/2, 1] within 1/99.

1 - u * that is a Chebyshev polynomial of degree 3 over the interval, so no quadratic is nearer.
"""


def reciprocal(emit: Emitter, negated: Value) -> Value:
    """About 2^30 / H for H in (2^15, 2^16], given -H: the quadratic, and one step of Newton's method."""
    c0, c1, c2 = _QUADRATIC
    slope = emit.lshr(emit.add(emit.mul(negated, c2), c1), 15)
    start = emit.lshr(emit.add(emit.mul(negated, slope), c0), 14)
    correction = emit.lshr(emit.mul(negated, start), 16)
    return emit.lshr(emit.mul(start, correction), 16)


def digit_shifts(bits: int) -> tuple[int, ...]:
    """By how much the dividend, of so many bits, is shifted down for each digit of the quotient."""
    if bits <= 12:
        return (0,)
    return (4, 0) if bits <= 21 else (15, 4, 0)


def divide_words(emit: Emitter, dividend: Value, divisor: Value) -> tuple[Value, Value]:
    """Unsigned quotient and remainder of words; the divisor is not 0."""
    length = bit_length(emit, divisor)
    normal = emit.shl(divisor, emit.sub(constant(I32, 32), length))
    factor = reciprocal(emit, emit.op("not", emit.lshr(normal, 16)))
    negated = emit.sub(constant(I32, 0), divisor)
    quotient: Value = constant(I32, 0)
    rest = dividend
    for shift in digit_shifts(possible_ones(dividend).bit_length()):
        product = emit.mul(emit.lshr(rest, shift), factor)
        digit = emit.lshr(product, emit.add(length, 14 - shift))
        rest = emit.add(emit.mul(digit, negated), rest)
        quotient = emit.add(digit, quotient)
    more = emit.op("zext", emit.icmp("uge", rest, divisor), type=I32)
    return emit.add(more, quotient), emit.add(emit.mul(more, negated), rest)


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
        return emit.sub(dividend, emit.mul(quotient, divisor)) if remainder else quotient
    magnitude = _magnitude if signed else _unchanged
    divide = divide_words if type_ is I32 else divide_wide
    pair = divide(emit, magnitude(emit, dividend), magnitude(emit, divisor))
    for other in _companions(division) if type_ is I64 else []:
        other.replace_all_uses_with(_finished(emit, other, pair))
        other.erase()
    return _finished(emit, division, pair)


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
