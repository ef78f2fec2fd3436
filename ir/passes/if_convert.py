"""If-conversion: small branches that only choose between values become selects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.simplify.control_flow import go_to

SPECULATIVE_HAZARDS = ("undef",)


@dataclass(frozen=True)
class IfConvert(Pass):
    """Turns an if-then or if-else whose sides only compute values into straight-line code with selects.

    Contract: values at the join are what they were. Only pure instructions, which cannot fault, are computed
    on the side not taken. The cost of a block of the machine is a pass for each lane that visits it, and
    guards are free: under a branch an instruction costs passes in the lanes of its side alone, hoisted in all
    of them, and a select of two values is two guarded moves, a pass a lane, as the phi was. So converting
    pays only where nothing is moved: it saves the branch's own pass and the order that blocks impose.
    Options: `limit` is how many instructions both sides may have together; `selects` bounds the number of
    values chosen.
    """

    name: ClassVar[str] = "if-convert"
    limit: int = 0
    selects: int = 2

    def run(self, function: Function) -> bool:
        changed = False
        for block in list(function.blocks):
            if block.parent is function:
                changed |= self.convert(function, block)
        return changed

    def convert(self, function: Function, block: BasicBlock) -> bool:
        """Converts the branch that ends a block, if it has the right shape."""
        branch = block.terminator
        if branch.op != "condbr" or len(block.successors) != 2:
            return False
        predecessors = function.predecessors()
        sides = [side_of(block, branch.attrs[name], predecessors) for name in ("then", "else")]
        joins = [
            branch.attrs[name] if side is None else side.terminator.attrs["target"]
            for name, side in zip(("then", "else"), sides, strict=True)
        ]
        if joins[0] is not joins[1] or sides == [None, None] or joins[0] is block:
            return False
        moved = [instruction for side in sides if side for instruction in side.body]
        if (
            len(moved) > self.limit
            or not all(map(is_speculative, moved))
            or len(joins[0].phis) > self.selects
        ):
            return False
        merge(function, block, (sides[0] or block, sides[1] or block), joins[0], moved)
        return True


def side_of(
    block: BasicBlock, target: BasicBlock, predecessors: dict[BasicBlock, list[BasicBlock]]
) -> BasicBlock | None:
    """The block between a branch and its join, if the target is one and has no other way in."""
    only = predecessors[target] == [block] and target.terminator.op == "br" and not target.phis
    return target if only else None


def is_speculative(instruction: Instruction) -> bool:
    """Whether an instruction may be computed where its result is not wanted."""
    return instruction.info.pure and instruction.op not in SPECULATIVE_HAZARDS


def merge(
    function: Function,
    block: BasicBlock,
    sources: tuple[BasicBlock, BasicBlock],
    join: BasicBlock,
    moved: list[Instruction],
) -> None:
    """Moves the sides' instructions up, and gives the join's phis a select for the two edges there were."""
    condition = block.terminator.operands[0]
    builder = Builder().before(block.terminator)
    for instruction in moved:
        instruction.detach()
        builder.insert(instruction)
    for phi in join.phis:
        chosen = {source: value for value, source in phi.incoming}
        value = builder.select(condition, chosen[sources[0]], chosen[sources[1]])
        for source in sources:
            phi.remove_incoming(source)
        phi.add_incoming(value, block)
    go_to(block, join)
    for side in sources:
        if side is not block:
            side.terminator.erase()
            function.blocks.remove(side)
            side.parent = None
