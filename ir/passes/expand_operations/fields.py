"""Bit fields: bfe and bfi of 32 and 64 bits, by shifts that give zeros from the width on."""

from __future__ import annotations

from qgpu.ir.core.builder import constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, IntType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.emitter import Emitter


def _amount(emit: Emitter, operand: Value, type_: IntType) -> Value:
    """A position or length as a shift amount of a type: its low byte."""
    return emit.cast("zext", emit.op("and", operand, 255), type_)


def _outside(emit: Emitter, length: Value) -> Value:
    """A mask of the bits from `length` on."""
    return emit.shl(constant(length.type, -1), length)


def expand_unsigned_extract(emit: Emitter, extract: Instruction) -> Value:
    """bfe_u: shifted down, and the bits outside the field cleared."""
    value, position, length = extract.operands
    type_ = _integer(value)
    shifted = emit.lshr(value, _amount(emit, position, type_))
    return _without(emit, shifted, _outside(emit, _amount(emit, length, type_)))


def expand_signed_extract(emit: Emitter, extract: Instruction) -> Value:
    """bfe_s: the field shifted to the top and down again; one that ends beyond the top, only down."""
    value, position, length = extract.operands
    type_ = _integer(value)
    width = type_.width
    start, size = emit.op("and", position, 255), emit.op("and", length, 255)
    up = emit.op("smax", emit.sub(constant(I32, width), emit.add(start, size)), 0)
    top = emit.shl(value, emit.cast("zext", up, type_))
    moved = emit.ashr(top, emit.cast("zext", emit.add(up, start), type_))
    empty = emit.icmp("eq", size, 0)
    return emit.select(empty, constant(type_, 0), moved)


def expand_insert(emit: Emitter, insert: Instruction) -> Value:
    """bfi: the bits of the field from the first operand, the others from the second."""
    value, base, position, length = insert.operands
    type_ = _integer(value)
    start, size = _amount(emit, position, type_), _amount(emit, length, type_)
    mask = emit.shl(emit.op("not", _outside(emit, size)), start)
    return _chosen(emit, mask, emit.shl(value, start), base)


def _integer(value: Value) -> IntType:
    assert isinstance(value.type, IntType)
    return value.type


def _without(emit: Emitter, value: Value, mask: Value) -> Value:
    """The bits of a value that are zero in a mask."""
    if isinstance(mask, Constant) or value.type is not I32:
        return emit.op("and", value, emit.op("not", mask))
    return emit.lop3(0xF0 & ~0xCC, value, mask, 0)


def _chosen(emit: Emitter, mask: Value, ones: Value, zeros: Value) -> Value:
    """The bits of one value where a mask is one, and of another where it is zero."""
    if mask.type is I32:
        return emit.lop3(0xF0 & 0xAA | 0xCC & ~0xAA, ones, zeros, mask)
    inside = emit.op("and", ones, mask)
    return emit.op("or", inside, emit.op("and", zeros, emit.op("not", mask)))
