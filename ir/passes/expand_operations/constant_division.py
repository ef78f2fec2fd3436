"""Division by constants: multiplication by a reciprocal of as many bits as the quotient needs.

Granlund, Montgomery: Division by Invariant Integers using Multiplication (PLDI 1994); Warren, Hacker's
Delight, chapter 10.
"""

from __future__ import annotations

from qgpu.ir.core.builder import constant
from qgpu.ir.core.types import IntType
from qgpu.ir.core.values import Value
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.simplify.known_bits import possible_ones

_SHORT = 1 << 16
"""Products of remainders by smaller divisors are words: 64 bits are divided in three steps by words."""


def quotient_by_constant(emit: Emitter, dividend: Value, divisor: int, signed: bool) -> Value:
    """The quotient by a constant other than 0."""
    type_ = dividend.type
    assert isinstance(type_, IntType)
    if signed and possible_ones(dividend) >> type_.width - 1 == 0 and divisor > 0:
        signed = False
    if signed:
        return _signed(emit, dividend, divisor, type_.width)
    return _unsigned(emit, dividend, divisor, type_.width)


def _unsigned(emit: Emitter, dividend: Value, divisor: int, width: int) -> Value:
    if divisor & (divisor - 1) == 0:
        return emit.lshr(dividend, divisor.bit_length() - 1)
    bits = possible_ones(dividend).bit_length()
    if width == 64 and bits <= 32:
        if divisor >> 32:
            return constant(dividend.type, 0)
        return emit.wide(_unsigned(emit, emit.low(dividend), divisor, 32))
    if width == 64 and divisor < _SHORT:
        return _by_words(emit, dividend, divisor)
    return _by_product(emit, dividend, divisor, width, bits)


def _by_product(emit: Emitter, dividend: Value, divisor: int, width: int, bits: int) -> Value:
    """floor(n * m / 2^p), where the whole product fits, else by its high half.

    The divisor's factors of two can be shifted out of the dividend first, which saves as many bits.
    """
    factor, power = multiplier(divisor, bits)
    zeros = (divisor & -divisor).bit_length() - 1
    if factor.bit_length() + bits <= width:
        return emit.lshr(emit.mul(dividend, factor), power)
    if zeros and (bits < width or factor.bit_length() > width):
        return _by_product(emit, emit.lshr(dividend, zeros), divisor >> zeros, width, bits - zeros)
    if power < width:
        factor, power = -(-(1 << width) // divisor), width
    high = emit.op("mulhi_u", dividend, constant(dividend.type, factor))
    if factor.bit_length() <= width:
        return emit.lshr(high, power - width)
    half = emit.lshr(emit.sub(dividend, high), 1)
    return emit.lshr(emit.add(half, high), power - width - 1)


def multiplier(divisor: int, bits: int) -> tuple[int, int]:
    """The least p, and m = ceil(2^p / d), with floor(n * m / 2^p) = floor(n / d) for all n of so many bits.

    That holds where m * d - 2^p <= 2^(p - bits).
    """
    power = bits
    while True:
        factor = -(-(1 << power) // divisor)
        if factor * divisor - (1 << power) <= 1 << power - bits:
            return factor, power
        power += 1


def _by_words(emit: Emitter, dividend: Value, divisor: int) -> Value:
    """Long division of 64 bits in base 2^32: the high word, then the low one with the remainder above it.

    With 2^32 = m * d + c, the latter, r * 2^32 + low, is d * (r * m + low / d) + (r * c + low % d), and the
    last term is a word.
    """
    low, high = emit.low(dividend), emit.high(dividend)
    whole, more = divmod(1 << 32, divisor)
    top, bottom = (_unsigned(emit, word, divisor, 32) for word in (high, low))
    rest, below = (emit.sub(word, emit.mul(part, divisor)) for word, part in ((high, top), (low, bottom)))
    last = _unsigned(emit, emit.add(emit.mul(rest, more), below), divisor, 32)
    return emit.pack(emit.add(last, emit.add(emit.mul(rest, whole), bottom)), top)


def _signed(emit: Emitter, dividend: Value, divisor: int, width: int) -> Value:
    """Rounded to zero: one more where the dividend is negative, of the quotient by the magnitude."""
    magnitude = abs(divisor)
    if magnitude & (magnitude - 1) == 0:
        quotient = _by_power_of_two(emit, dividend, magnitude.bit_length() - 1, width)
    else:
        quotient = _signed_product(emit, dividend, magnitude, width)
    return emit.sub(constant(dividend.type, 0), quotient) if divisor < 0 else quotient


def _by_power_of_two(emit: Emitter, dividend: Value, shift: int, width: int) -> Value:
    if shift == 0:
        return dividend
    sign = emit.ashr(dividend, width - 1)
    return emit.ashr(emit.add(dividend, emit.lshr(sign, width - shift)), shift)


def _signed_product(emit: Emitter, dividend: Value, magnitude: int, width: int) -> Value:
    """The multiplier for magnitudes of width - 1 bits; as a signed number it may lack 2^width."""
    factor, power = multiplier(magnitude, width - 1)
    if power < width:
        factor, power = -(-(1 << width) // magnitude), width
    high = emit.op("mulhi_s", dividend, constant(dividend.type, factor))
    if factor >> width - 1:
        high = emit.add(high, dividend)
    shifted = emit.ashr(high, power - width)
    return emit.sub(shifted, emit.ashr(dividend, width - 1))
