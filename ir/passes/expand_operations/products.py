"""High halves of products, from products of half as many bits."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32
from qgpu.ir.core.values import Value
from qgpu.ir.passes.emitter import Emitter


def expand_high_product(emit: Emitter, product: Instruction) -> Value:
    """mulhi_u and mulhi_s, of words from half words, of numbers of 64 bits from words."""
    a, b = product.operands
    signed = product.op == "mulhi_s"
    if product.type is I32:
        return high_word(emit, a, b, signed)
    high = high_of_64(emit, a, b)
    return _corrected(emit, high, a, b) if signed else high


def high_word(emit: Emitter, a: Value, b: Value, signed: bool) -> Value:
    """The high word of a product of words.

    With a = a1 * 2^16 + a0 and b alike, a1 * b0 + (a0 * b0 >> 16) fits a word, and so does a0 * b1 + (that &
    0xffff): unsigned, and where a1 and b1 are signed (Knuth, The Art of Computer Programming, 4.3.1).
    """
    right = emit.ashr if signed else emit.lshr
    a0, a1 = emit.op("and", a, 0xFFFF), right(a, 16)
    b0, b1 = (a0, a1) if b is a else (emit.op("and", b, 0xFFFF), right(b, 16))
    first = emit.add(emit.mul(a1, b0), emit.lshr(emit.mul(a0, b0), 16))
    second = emit.add(emit.mul(a0, b1), emit.op("and", first, 0xFFFF))
    return emit.add(emit.add(emit.mul(a1, b1), right(first, 16)), right(second, 16))


def high_of_64(emit: Emitter, a: Value, b: Value) -> Value:
    """The high 64 bits of an unsigned product of 128, by the same scheme on words."""
    a0, a1, b0, b1 = (emit.wide(part(x)) for x in (a, b) for part in (emit.low, emit.high))
    lowest = emit.op("mulhi_u", emit.low(a), emit.low(b))
    first = emit.add(emit.mul(a1, b0), emit.wide(lowest))
    second = emit.add(emit.mul(a0, b1), emit.wide(emit.low(first)))
    upper = emit.add(emit.mul(a1, b1), emit.wide(emit.high(first)))
    return emit.add(upper, emit.wide(emit.high(second)))


def _corrected(emit: Emitter, high: Value, a: Value, b: Value) -> Value:
    """The signed high half from the unsigned one: a negative factor took 2^64 of the other too much."""
    for factor, other in ((a, b), (b, a)):
        sign = emit.ashr(emit.high(factor), 31)
        high = emit.sub(high, emit.op("and", other, emit.pack(sign, sign)))
    return high
