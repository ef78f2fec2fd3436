"""Counting and reversing bits."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32
from qgpu.ir.core.values import Value
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.simplify.known_bits import possible_ones


def smeared(emit: Emitter, value: Value) -> tuple[Value, int]:
    """A word with ones from its highest one down but for the last step: or it with itself shifted by that."""
    bits = possible_ones(value).bit_length()
    shift = 1
    while 2 * shift < bits:
        value = emit.op("or", value, emit.lshr(value, shift))
        shift *= 2
    return value, shift


def bit_length(emit: Emitter, value: Value) -> Value:
    """The number of bits of a word up to its highest one."""
    value, shift = smeared(emit, value)
    return emit.op("popc", emit.op("or", value, emit.lshr(value, shift)))


def leading_zeros(emit: Emitter, value: Value) -> Value:
    """The zeros of a word above its highest one: those of the word with ones below that."""
    value, shift = smeared(emit, value)
    return emit.op("popc", emit.lop3(~(0xF0 | 0xCC), value, emit.lshr(value, shift), 0))


def expand_clz(emit: Emitter, clz: Instruction) -> Value:
    """Of a pair the word that decides is counted: the high one, unless that is zero."""
    value = clz.operands[0]
    if value.type is I32:
        return leading_zeros(emit, value)
    low, high = emit.low(value), emit.high(value)
    empty = emit.icmp("eq", high, 0)
    zeros = emit.op("clz", emit.select(empty, low, high))
    return emit.wide(emit.add(zeros, emit.select(empty, 32, 0)))


def expand_popc(emit: Emitter, popc: Instruction) -> Value:
    """popc of 64 bits."""
    value = popc.operands[0]
    return emit.wide(emit.add(emit.op("popc", emit.low(value)), emit.op("popc", emit.high(value))))


_HALVES = ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF))
"""How far groups of bits move, and the places of the lower groups."""


def expand_brev(emit: Emitter, brev: Instruction) -> Value:
    """Neighbouring groups of 1, 2, 4, 8 and 16 bits change places (Warren, Hacker's Delight, 7-1)."""
    value = brev.operands[0]
    if value.type is not I32:
        return emit.pack(emit.op("brev", emit.high(value)), emit.op("brev", emit.low(value)))
    for shift, lower in _HALVES:
        down, up = emit.lshr(value, shift), emit.shl(value, shift)
        value = emit.lop3(0xF0 & 0xAA | 0xCC & ~0xAA, down, up, lower)
    return emit.add(emit.shl(value, 16), emit.lshr(value, 16))
