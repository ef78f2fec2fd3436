"""A loop's first test, which a compiler has put before the loop, becomes the loop's own again.

`while (test()) body();` is often compiled as `if (test()) do body(); while (test());`. Both tests then go to
the block behind the loop. Here they lead to one new header, which goes on as the last of them has said.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.ir.analysis.loops import Loop
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1
from qgpu.ir.core.values import Value


@dataclass(frozen=True)
class FirstTest:
    """A loop whose `latch`, like the block `before` it, goes to its header or to the block `behind`."""

    loop: Loop
    before: BasicBlock
    latch: BasicBlock
    behind: BasicBlock

    def move_inside(self, function: Function) -> None:
        """Make the decision in a new header."""
        inside = self.loop.header
        header = function.add_block(f"{inside.name}.test", before=inside)
        decided = header.append(Instruction("phi", I1, attrs={"blocks": ()}, name="leaves"))
        for source in (self.before, self.latch):
            decided.add_incoming(self._leaves(source), source)
        for phi in (*inside.phis, *self.behind.phis):
            phi.detach()
            header.insert(0, phi)
        for source in (self.before, self.latch):
            loc = source.terminator.loc
            source.terminator.erase()
            Builder(source, loc).br(header)
        Builder(header).condbr(decided, self.behind, inside)

    def _leaves(self, source: BasicBlock) -> Value:
        """Whether a test goes to the block behind the loop."""
        branch = source.terminator
        condition = branch.operands[0]
        if branch.successors[0] is self.behind:
            return condition
        return Builder().before(branch).emit("not", condition)


def first_test(
    loop: Loop, behind: BasicBlock, predecessors: dict[BasicBlock, list[BasicBlock]]
) -> FirstTest | None:
    """The first test before a loop, if the only other one is at its end."""
    before = [block for block in predecessors[loop.header] if block not in loop]
    if len(before) != 1 or len(loop.latches) != 1:
        return None
    tests = {before[0], loop.latches[0]}
    alike = all(set(test.successors) == {loop.header, behind} for test in tests)
    if not alike or set(predecessors[behind]) != tests:
        return None
    return FirstTest(loop, before[0], loop.latches[0], behind)
