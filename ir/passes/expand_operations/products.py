"""High halves of products of 64 bits, from products of words."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Value
from qgpu.ir.passes.emitter import Emitter


def expand_high_product(emit: Emitter, product: Instruction) -> Value:
    """mulhi_u and mulhi_s of 64 bits."""
    a, b = product.operands
    high = high_of_64(emit, a, b)
    return _corrected(emit, high, a, b) if product.op == "mulhi_s" else high


def high_of_64(emit: Emitter, a: Value, b: Value) -> Value:
    """The high 64 bits of an unsigned product of 128.

    With a = a1 * 2^32 + a0 and b alike, a1 * b0 + (a0 * b0 >> 32) has 64 bits, and so has a0 * b1 + the low
    word of that (Knuth, The Art of Computer Programming, 4.3.1).
    """
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
