"""Common subexpressions: a value that a dominating instruction has computed already is not computed again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.manager import Pass


@dataclass(frozen=True)
class CommonSubexpressions(Pass):
    """Value numbering over the dominator tree, of instructions that depend on operands or the lane alone.

    Contract: loads, atomics and everything with an effect stay. Runs before linearisation only, since under
    guards a dominating instruction may have skipped a lane.
    """

    name: ClassVar[str] = "common-subexpressions"

    def run(self, function: Function) -> bool:
        if function.linearised:
            return False
        tree = DominatorTree(function)
        tables: dict[BasicBlock, dict[Hashable, Instruction]] = {}
        changed = False
        for block in tree.preorder():
            parent = tree.idom(block)
            tables[block] = dict(tables[parent]) if parent else {}
            changed |= number_block(block, tables[block])
        return changed


LEFT = ("undef", "pack")
"""An undefined value is none in particular; a pair of words belongs to the atomic that takes it."""


def number_block(block: BasicBlock, table: dict[Hashable, Instruction]) -> bool:
    """Replaces what the table knows, and adds the rest to it."""
    changed = False
    for instruction in list(block.instructions):
        if not instruction.info.pure or instruction.op in LEFT:
            continue
        known = table.setdefault(key_of(instruction), instruction)
        if known is not instruction:
            instruction.replace_all_uses_with(known)
            instruction.erase()
            changed = True
    return changed


def key_of(instruction: Instruction) -> Hashable:
    """Equal for instructions that compute the same value."""
    operands = [operand_key(operand) for operand in instruction.operands]
    if instruction.info.commutative:
        operands.sort(key=repr)
    return (instruction.op, instruction.type, tuple(operands), tuple(sorted(instruction.attrs.items())))


def operand_key(value: Value) -> Hashable:
    return (value.type, value.value) if isinstance(value, Constant) else id(value)
