"""Blocks taken apart."""

from __future__ import annotations

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.instruction import Instruction


def split_before(instruction: Instruction, name: str = "") -> BasicBlock:
    """Moves an instruction and what follows it to a new block, to which the old one then goes.

    The instruction is not a phi. The new block stands behind the old one, under the same guard: a set of a
    slot in the guard is at its block's end and moves along.
    """
    block = instruction.block
    function = block.parent
    assert function is not None
    rest = function.add_block(name or f"{block.name}.rest")
    function.blocks.remove(rest)
    function.blocks.insert(function.blocks.index(block) + 1, rest)
    rest.guard = block.guard
    for successor in block.successors:
        for phi in successor.phis:
            phi.attrs["blocks"] = tuple(rest if source is block else source for source in phi.attrs["blocks"])
    for moved in block.instructions[block.instructions.index(instruction) :]:
        moved.detach()
        rest.append(moved)
    Builder(block, instruction.loc).br(rest)
    return rest
