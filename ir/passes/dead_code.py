"""Removal of instructions, slots and blocks that nothing needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.cfg import reachable_blocks
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import Effect
from qgpu.ir.core.types import SlotType
from qgpu.ir.passes.manager import Pass


def is_removable(instruction: Instruction) -> bool:
    """Whether an instruction may go if nothing uses its result. Volatile loads stay."""
    if instruction.info.effect is Effect.READ:
        return not instruction.attrs.get("volatile", False)
    return instruction.info.effect in (Effect.NONE, Effect.EXCHANGE) and not instruction.info.terminator


def remove_unreachable_blocks(function: Function) -> bool:
    """Takes out the blocks that no path from the entry reaches; True where there were any."""
    reached = set(reachable_blocks(function))
    dead = [block for block in function.blocks if block not in reached]
    for block in dead:
        function.erase_block(block)
    return bool(dead)


def remove_dead_instructions(function: Function) -> bool:
    """Keeps what effects, terminators and guards need, directly or not; cycles of dead phis go too.

    A `set` is needed only where its slot is: the walk finds it from the slot's readers.
    """
    live: set[Instruction] = set()
    work = [i for i in function.instructions if not is_removable(i) and i.op != "set"]
    work += [
        literal.value
        for block in function.blocks
        for literal in block.guard
        if isinstance(literal.value, Instruction)
    ]
    while work:
        instruction = work.pop()
        if instruction in live:
            continue
        live.add(instruction)
        work += [operand for operand in instruction.operands if isinstance(operand, Instruction)]
        if isinstance(instruction.type, SlotType):
            work += [user for user in instruction.users if isinstance(user, Instruction) and user.op == "set"]
    dead = [instruction for instruction in function.instructions if instruction not in live]
    for instruction in dead:
        instruction.operands = ()
    for instruction in dead:
        instruction.erase()
    return bool(dead)


def erase_if_dead(instruction: Instruction) -> None:
    """Erases an instruction nothing uses, and then those of its operands nothing uses any more."""
    work = [instruction]
    while work:
        candidate = work.pop()
        if candidate.parent is None or candidate.uses or not is_removable(candidate):
            continue
        operands = [operand for operand in candidate.operands if isinstance(operand, Instruction)]
        candidate.erase()
        work += operands


def merge_blocks(function: Function) -> bool:
    """Appends a block to its only predecessor where that goes nowhere else and has the same guard."""
    changed = False
    predecessors = function.predecessors()
    for block in list(function.blocks):
        sources = predecessors[block]
        if len(sources) == 1 and _can_merge(sources[0], block):
            _merge(sources[0], block)
            for successor in sources[0].successors:
                predecessors[successor] = [sources[0] if b is block else b for b in predecessors[successor]]
            changed = True
    return changed


def _can_merge(source: BasicBlock, block: BasicBlock) -> bool:
    if source is block or source.terminator.op != "br" or source.guard != block.guard:
        return False
    own = {literal.value for literal in block.guard}
    return not any(i.op == "set" and i.operands[0] in own for i in source.instructions)


def _merge(source: BasicBlock, block: BasicBlock) -> None:
    function = block.parent
    assert function is not None
    for phi in block.phis:
        phi.replace_all_uses_with(phi.operands[0])
        phi.erase()
    source.terminator.erase()
    for successor in block.successors:
        for phi in successor.phis:
            phi.attrs["blocks"] = tuple(source if b is block else b for b in phi.attrs["blocks"])
    for instruction in list(block.instructions):
        instruction.detach()
        source.append(instruction)
    block.guard = ()
    function.blocks.remove(block)
    block.parent = None


@dataclass(frozen=True)
class DeadCode(Pass):
    """Removes unreachable blocks, and instructions and slots that no effect, branch or guard depends on.

    Contract: memory, faults of stores and atomics, and the order of effects stay as they are. A load whose
    value is not needed goes even where its address might have faulted; volatile loads stay.
    """

    name: ClassVar[str] = "dead-code"

    def run(self, function: Function) -> bool:
        changed = remove_unreachable_blocks(function)
        return remove_dead_instructions(function) or changed
