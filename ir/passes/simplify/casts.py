"""Casts of casts, and casts that change nothing."""

from __future__ import annotations

from qgpu.ir.core.builder import Builder
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I64, IntType
from qgpu.ir.core.values import Value
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import Rule, before, is_op, like, number, width


def simplify_extension(cast: Instruction) -> Value | None:
    value = cast.operands[0]
    assert isinstance(cast.type, IntType)
    inner = is_op(value, "zext") or is_op(value, "sext")
    if inner and (inner.op == cast.op or inner.op == "zext"):
        return before(cast).emit(inner.op, inner.operands[0], type=cast.type)
    cut = is_op(value, "trunc")
    if cut and cut.operands[0].type is cast.type:
        return extended_in_place(cast, cut.operands[0], width(value))
    return None


def extended_in_place(cast: Instruction, value: Value, bits: int) -> Value | None:
    """The extension of the low `bits` of a value that has the result's type: a mask, or nothing at all."""
    mask = (1 << bits) - 1
    if cast.op == "zext":
        return (
            value if possible_ones(value) & ~mask == 0 else before(cast).emit("and", value, like(value, mask))
        )
    return value if possible_ones(value) & ~(mask >> 1) == 0 else None


def simplify_trunc(cast: Instruction) -> Value | None:
    value = cast.operands[0]
    assert isinstance(cast.type, IntType)
    builder = before(cast)
    inner = is_op(value, "trunc")
    if inner:
        return builder.emit("trunc", inner.operands[0], type=cast.type)
    word = low_word(builder, value) if cast.type.width <= 32 else None
    if word is not None:
        return builder.cast("trunc", word, cast.type)
    extension = is_op(value, "zext") or is_op(value, "sext")
    if extension is None:
        return None
    source = extension.operands[0]
    if source.type is cast.type:
        return source
    op = extension.op if width(source) < cast.type.width else "trunc"
    return builder.emit(op, source, type=cast.type)


def low_word(builder: Builder, value: Value) -> Value | None:
    """The low word of a pair, or of a number shifted down by a word."""
    pack = is_op(value, "pack")
    if pack:
        return pack.operands[0]
    shift = is_op(value, "lshr") or is_op(value, "ashr")
    if shift and shift.type is I64 and number(shift.operands[1]) == 32:
        return builder.emit("high", shift.operands[0])
    return None


def simplify_store(store: Instruction) -> Value | None:
    """A store of low bits does not need what only changes the others."""
    pointer, value = store.operands
    memory = store.attrs["type"]
    if not isinstance(memory, IntType) or not isinstance(value, Instruction):
        return None
    masked = is_op(value, "and")
    kept = number(masked.operands[1]) if masked else None
    if masked and kept is not None and kept & memory.mask == memory.mask:
        store.operands = (pointer, masked.operands[0])
        return store
    cast = is_op(value, "zext") or is_op(value, "sext") or is_op(value, "trunc")
    if cast and width(cast.operands[0]) >= memory.width and width(cast.operands[0]) in (memory.width, 32):
        store.operands = (pointer, cast.operands[0])
        return store
    return None


CASTS: dict[str, Rule] = {
    "zext": simplify_extension,
    "sext": simplify_extension,
    "trunc": simplify_trunc,
    "store": simplify_store,
}
