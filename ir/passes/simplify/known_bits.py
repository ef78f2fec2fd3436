"""Which bits of a value may be one, as far as a short look at its definition tells."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import IntType
from qgpu.ir.core.values import Constant, Value

DEPTH = 4


def possible_ones(value: Value, depth: int = DEPTH) -> int:
    """A mask of the bits that may be one; all bits where nothing is known."""
    assert isinstance(value.type, IntType)
    mask = value.type.mask
    if isinstance(value, Constant):
        return value.value
    if not isinstance(value, Instruction) or depth == 0:
        return mask
    return mask & _ones_of(value, depth - 1)


def _ones_of(value: Instruction, depth: int) -> int:
    op, operands = value.op, value.operands
    if op == "zext":
        return possible_ones(operands[0], depth)
    if op == "and":
        return possible_ones(operands[0], depth) & possible_ones(operands[1], depth)
    if op in ("or", "xor"):
        return possible_ones(operands[0], depth) | possible_ones(operands[1], depth)
    if op == "select":
        return possible_ones(operands[1], depth) | possible_ones(operands[2], depth)
    if op == "lshr" and isinstance(operands[1], Constant):
        return possible_ones(operands[0], depth) >> min(operands[1].value, 64)
    if op == "load" and value.attrs.get("ext") == "zero":
        return value.attrs["type"].mask
    return -1
