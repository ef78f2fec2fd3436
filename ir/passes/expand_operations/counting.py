"""Counting and reversing bits of pairs of words, by those of words."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Value
from qgpu.ir.passes.emitter import Emitter


def expand_clz(emit: Emitter, clz: Instruction) -> Value:
    """The word that decides is counted: the high one, unless that is zero."""
    value = clz.operands[0]
    low, high = emit.low(value), emit.high(value)
    empty = emit.icmp("eq", high, 0)
    zeros = emit.op("clz", emit.select(empty, low, high))
    return emit.wide(emit.add(zeros, emit.select(empty, 32, 0)))


def expand_popc(emit: Emitter, popc: Instruction) -> Value:
    """The sum of both words' counts."""
    value = popc.operands[0]
    return emit.wide(emit.add(emit.op("popc", emit.low(value)), emit.op("popc", emit.high(value))))


def expand_brev(emit: Emitter, brev: Instruction) -> Value:
    """Both words reversed, in each other's place."""
    value = brev.operands[0]
    return emit.pack(emit.op("brev", emit.high(value)), emit.op("brev", emit.low(value)))
