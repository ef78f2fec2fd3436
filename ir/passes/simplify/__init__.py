"""Simplification: constant folding, algebraic identities, and control flow that is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.cfg import reverse_postorder
from qgpu.ir.core.folding import fold
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import SWAPPED_PREDICATE
from qgpu.ir.core.types import SlotType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.dead_code import erase_if_dead, remove_dead_instructions
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.simplify.addresses import ADDRESSES
from qgpu.ir.passes.simplify.arithmetic import ARITHMETIC
from qgpu.ir.passes.simplify.casts import CASTS
from qgpu.ir.passes.simplify.compare import COMPARE
from qgpu.ir.passes.simplify.control_flow import simplify_control_flow, simplify_phi
from qgpu.ir.passes.simplify.fields import FIELDS
from qgpu.ir.passes.simplify.logic import LOGIC
from qgpu.ir.passes.simplify.rules import Rule

__all__ = ["Simplify"]

RULES: dict[str, Rule] = {
    **ARITHMETIC,
    **LOGIC,
    **FIELDS,
    **COMPARE,
    **CASTS,
    **ADDRESSES,
    "phi": simplify_phi,
}


@dataclass(frozen=True)
class Simplify(Pass):
    """Replaces values by simpler equal ones, until nothing changes.

    Contract: every value used by an effect, and every branch, is what it was. Constants stand on the right of
    commutative operations and comparisons; a shift left by a constant is a multiplication; a subtraction of a
    constant an addition; a select between compared values a minimum or maximum. Branches on constants are
    decided, empty and unreachable blocks go, blocks with one way between them become one. Runs before
    linearisation only.
    """

    name: ClassVar[str] = "simplify"

    def run(self, function: Function) -> bool:
        if function.linearised:
            return False
        changed = simplify_control_flow(function)
        while simplify_instructions(function) or simplify_control_flow(function):
            changed = True
        return remove_dead_instructions(function) or changed


def simplify_instructions(function: Function) -> bool:
    """Visits every instruction once; True where one was replaced or changed."""
    changed = False
    for instruction in [i for block in reverse_postorder(function) for i in block.instructions]:
        if instruction.parent is not None and not isinstance(instruction.type, SlotType):
            changed |= simplify_instruction(instruction)
    return changed


def simplify_instruction(instruction: Instruction) -> bool:
    """Applies folding or the opcode's rule to one instruction."""
    order_operands(instruction)
    found = fold(instruction)
    rule = RULES.get(instruction.op)
    if found is None and rule is not None:
        found = rule(instruction)
    if found is None:
        return False
    if found is not instruction:
        replace(instruction, found)
    return True


def replace(instruction: Instruction, value: Value) -> None:
    """Puts a value in an instruction's place; a new one takes over its name."""
    if isinstance(value, Instruction) and not value.name and not value.uses:
        value.name = instruction.name
    instruction.replace_all_uses_with(value)
    erase_if_dead(instruction)


def order_operands(instruction: Instruction) -> None:
    """Puts a constant to the right where the operation allows it."""
    if len(instruction.operands) != 2 or not isinstance(instruction.operands[0], Constant):
        return
    a, b = instruction.operands
    if isinstance(b, Constant):
        return
    if instruction.op == "icmp":
        instruction.attrs["pred"] = SWAPPED_PREDICATE[instruction.attrs["pred"]]
    elif not instruction.info.commutative:
        return
    instruction.operands = (b, a)
