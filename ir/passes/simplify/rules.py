"""How simplification rules are written: functions from an instruction to a value that may replace it."""

from __future__ import annotations

from collections.abc import Callable

from qgpu.ir.core.builder import Builder
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import IntType, Type
from qgpu.ir.core.values import Constant, Value

Rule = Callable[[Instruction], Value | None]
"""Gives the value that an instruction equals, building new instructions before it where needed, or None.

A rule may also change the instruction in place; it then returns the instruction itself.
"""


def is_op(value: Value, op: str) -> Instruction | None:
    """The instruction that computes a value, if its opcode is `op`."""
    return value if isinstance(value, Instruction) and value.op == op else None


def number(value: Value) -> int | None:
    """A constant's unsigned number."""
    return value.value if isinstance(value, Constant) else None


def is_zero(value: Value) -> bool:
    return number(value) == 0


def is_all_ones(value: Value) -> bool:
    return isinstance(value, Constant) and value.value == value.type.mask


def width(value: Value | Type) -> int:
    """Width in bits of an integer value or type."""
    type_ = value if isinstance(value, Type) else value.type
    assert isinstance(type_, IntType)
    return type_.width


def like(value: Value, number: int) -> Constant:
    """A constant of a value's type."""
    assert isinstance(value.type, IntType)
    return Constant(value.type, number)


def before(instruction: Instruction) -> Builder:
    return Builder().before(instruction)
