"""Natural loops and how they nest."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.analysis.graph import strongly_connected_components
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function


@dataclass(eq=False)
class Loop:
    """A natural loop: `header` dominates all `blocks` (in block order); `latches` have an edge back to it."""

    header: BasicBlock
    latches: list[BasicBlock]
    blocks: list[BasicBlock]
    parent: Loop | None = None
    children: list[Loop] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """1 for an outermost loop."""
        return 1 if self.parent is None else self.parent.depth + 1

    @property
    def exit_edges(self) -> list[tuple[BasicBlock, BasicBlock]]:
        """The edges that leave the loop, as pairs (block inside, block outside)."""
        return [(block, other) for block in self.blocks for other in block.successors if other not in self]

    @property
    def exiting_blocks(self) -> list[BasicBlock]:
        return list(dict.fromkeys(block for block, _ in self.exit_edges))

    @property
    def exit_blocks(self) -> list[BasicBlock]:
        return list(dict.fromkeys(block for _, block in self.exit_edges))

    def preheader(self, predecessors: dict[BasicBlock, list[BasicBlock]]) -> BasicBlock | None:
        """The block outside that goes to the header alone and is the only one to do so, if there is one."""
        outside = [block for block in predecessors[self.header] if block not in self]
        if len(outside) != 1 or outside[0].successors != (self.header,):
            return None
        return outside[0]

    def __post_init__(self) -> None:
        self._members = frozenset(self.blocks)

    def __contains__(self, block: object) -> bool:
        return block in self._members

    def __repr__(self) -> str:
        return f"Loop({self.header.name}, depth {self.depth})"


class LoopInfo:
    """The loop forest of a function; `loops` lists all loops, outer before inner.

    `irreducible` lists the blocks of cycles with more than one entry, which are no natural loops.
    """

    def __init__(self, function: Function, tree: DominatorTree | None = None) -> None:
        self.tree = tree or DominatorTree(function)
        self.loops = [self._natural_loop(header, latches) for header, latches in self._headers()]
        self._innermost: dict[BasicBlock, Loop] = {}
        self._nest()
        self.irreducible = self._irreducible()

    def _headers(self) -> list[tuple[BasicBlock, list[BasicBlock]]]:
        """The blocks that dominate one of their predecessors, with these, in reverse postorder."""
        found = []
        for block in self.tree.order:
            latches = [
                source for source in self.tree.predecessors[block] if self.tree.dominates(block, source)
            ]
            if latches:
                found.append((block, latches))
        return found

    def _natural_loop(self, header: BasicBlock, latches: list[BasicBlock]) -> Loop:
        """The loop of all back edges to a header: the blocks that reach a latch without the header."""
        members, work = {header}, list(latches)
        while work:
            block = work.pop()
            if block not in members:
                members.add(block)
                work += self.tree.predecessors[block]
        return Loop(header, latches, [block for block in self.tree.order if block in members])

    def _nest(self) -> None:
        """Finds parents: loops come outer first, since an outer header precedes in reverse postorder."""
        for loop in self.loops:
            loop.parent = self._innermost.get(loop.header)
            if loop.parent is not None:
                loop.parent.children.append(loop)
            self._innermost.update(dict.fromkeys(loop.blocks, loop))

    def _irreducible(self) -> list[BasicBlock]:
        order = self.tree.order
        forward = {
            block: [other for other in block.successors if not self.tree.dominates(other, block)]
            for block in order
        }
        components = strongly_connected_components(order, forward.__getitem__)
        return [block for component in components if len(component) > 1 for block in component]

    @property
    def top_level(self) -> list[Loop]:
        return [loop for loop in self.loops if loop.parent is None]

    def innermost(self, block: BasicBlock) -> Loop | None:
        """The innermost loop that holds a block."""
        return self._innermost.get(block)

    def depth(self, block: BasicBlock) -> int:
        """How many loops hold a block."""
        loop = self.innermost(block)
        return loop.depth if loop else 0
