"""Sixth step: values whose definition no longer dominates a use go through slots.

Branches that skip code, and loops that all lanes leave at one place, make paths on which a definition is not
passed. No lane that reads the value takes such a path, but SSA form cannot tell.
"""

from __future__ import annotations

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import VOID, SlotType
from qgpu.ir.core.values import Use
from qgpu.ir.passes.linearize.state import State, append_set


def repair_dominance(state: State) -> None:
    """Gives each value with a use it does not dominate a slot, set where the value is computed."""
    tree = DominatorTree(state.function)
    for value in list(state.function.instructions):
        if value.type is VOID or isinstance(value.type, SlotType):
            continue
        broken = [use for use in value.uses if not tree.value_dominates_use(value, use)]
        if broken:
            demote(state, value, broken)


def demote(state: State, value: Instruction, uses: list[Use]) -> None:
    """Makes the uses read a slot: guards the slot itself, instructions a `get` at their block's start."""
    slot = state.new_slot(value.type, value.name and f"{value.name}.out")
    reads: dict[BasicBlock, Instruction] = {}
    for use in uses:
        if isinstance(use.user, BasicBlock):
            use.replace(slot)
            continue
        block = use.user.block
        if block not in reads:
            reads[block] = Builder().at_start(block).get(slot)
        use.replace(reads[block])
    append_set(value.block, slot, value)
