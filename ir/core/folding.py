"""Evaluation of one instruction on numbers, by the opcode table: for constant folding and interpretation."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import Shape
from qgpu.ir.core.types import IntType, Type
from qgpu.ir.core.values import Constant, Value


def width_of(type_: Type) -> int:
    """The width of an integer type in bits; 64 for a pointer's offset."""
    return type_.width if isinstance(type_, IntType) else 64


def evaluate(instruction: Instruction, values: Sequence[int]) -> int | None:
    """The result for unsigned operand values, as an unsigned number.

    None where the opcode has no folding function.
    """
    function = instruction.info.evaluate
    if function is None:
        return None
    width = width_of(instruction.type)
    shape = Shape(width_of(instruction.operands[0].type), width, instruction.attrs)
    return function(shape, values) & ((1 << width) - 1)


def fold(instruction: Instruction) -> Constant | None:
    """The constant an instruction with constant operands computes; None where it is not one."""
    constants = [operand for operand in instruction.operands if isinstance(operand, Constant)]
    if (
        not constants
        or len(constants) != len(instruction.operands)
        or not isinstance(instruction.type, IntType)
    ):
        return None
    result = evaluate(instruction, [constant.value for constant in constants])
    return None if result is None else Constant(instruction.type, result)


def folded(instruction: Instruction) -> Value:
    """An instruction that nothing uses yet, or the constant that it computes, which takes its place."""
    constant = fold(instruction)
    if constant is None:
        return instruction
    instruction.erase()
    return constant
