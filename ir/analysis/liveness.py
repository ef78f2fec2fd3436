"""Live ranges over blocks: which values a block's start and end still need."""

from __future__ import annotations

from qgpu.ir.analysis.cfg import postorder
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import SlotType
from qgpu.ir.core.values import Argument, Value


class Liveness:
    """Values live into and out of each reachable block, in the order of their definition.

    A phi's operand is used at the end of the predecessor, the phi itself is defined at its block's start.
    Slots are values too: a `set` in an unguarded block defines one anew, a `get` or a guard uses it; under a
    guard a `set` and any other result keeps the old value in some lanes, so it does not end the range above.
    """

    def __init__(self, function: Function) -> None:
        self.order: dict[Value, int] = {}
        for value in (*function.args, *function.instructions):
            self.order[value] = len(self.order)
        self._used = {block: self._upward_exposed(block) for block in function.blocks}
        self._defined = {block: self._definitions(block) for block in function.blocks}
        self._in: dict[BasicBlock, set[Value]] = {block: set() for block in function.blocks}
        self._out: dict[BasicBlock, set[Value]] = {block: set() for block in function.blocks}
        self._solve(postorder(function))

    def _definitions(self, block: BasicBlock) -> set[Value]:
        defined: set[Value] = {i for i in block.instructions if not isinstance(i.type, SlotType)}
        if not block.guard:
            defined |= {i.operands[0] for i in block.instructions if i.op == "set"}
        return defined

    def _upward_exposed(self, block: BasicBlock) -> set[Value]:
        """The values a block reads before it defines them, guard first."""
        used = {literal.value for literal in block.guard}
        defined: set[Value] = set()
        for instruction in block.instructions:
            if instruction.op != "phi":
                used |= {value for value in _reads(instruction) if value not in defined}
            if instruction.op == "set" and not block.guard:
                defined.add(instruction.operands[0])
            defined.add(instruction)
        return {value for value in used if isinstance(value, Instruction | Argument)}

    def _solve(self, order: list[BasicBlock]) -> None:
        changed = True
        while changed:
            changed = False
            for block in order:
                out = self._live_out(block)
                into = self._used[block] | (out - self._defined[block])
                changed |= into != self._in[block]
                self._in[block], self._out[block] = into, out

    def _live_out(self, block: BasicBlock) -> set[Value]:
        out: set[Value] = set()
        for successor in block.successors:
            out |= self._in[successor].difference(successor.phis)
            out |= {
                value
                for phi in successor.phis
                for value, source in phi.incoming
                if source is block and isinstance(value, Instruction | Argument)
            }
        return out

    def live_in(self, block: BasicBlock) -> list[Value]:
        """The values that must be there when a block starts (its phis' results are not)."""
        return sorted(self._in[block], key=self.order.__getitem__)

    def live_out(self, block: BasicBlock) -> list[Value]:
        """The values that are read after a block's end, phis' reads on its edges included."""
        return sorted(self._out[block], key=self.order.__getitem__)


def _reads(instruction: Instruction) -> list[Value]:
    """The values an instruction reads; a `set` writes its slot."""
    return list(instruction.operands[1:] if instruction.op == "set" else instruction.operands)
