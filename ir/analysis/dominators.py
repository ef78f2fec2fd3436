"""Dominator tree: which blocks every path from the entry to a block runs through."""

from __future__ import annotations

from qgpu.ir.analysis.cfg import reverse_postorder
from qgpu.ir.analysis.graph import Tree, immediate_dominators
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Use, Value


class DominatorTree:
    """Dominators of a function's reachable blocks. Blocks that cannot be reached are in no relation."""

    def __init__(self, function: Function) -> None:
        self.order = reverse_postorder(function)
        reached = set(self.order)
        self.predecessors = {
            block: [source for source in sources if source in reached]
            for block, sources in function.predecessors().items()
            if block in reached
        }
        self._idom = immediate_dominators(self.order, self.predecessors.__getitem__)
        self._tree = Tree(self._idom)

    def reachable(self, block: BasicBlock) -> bool:
        return block in self._tree

    def idom(self, block: BasicBlock) -> BasicBlock | None:
        """The immediate dominator; None for the entry."""
        return self._idom[block]

    def children(self, block: BasicBlock) -> list[BasicBlock]:
        """The blocks whose immediate dominator this is, in reverse postorder."""
        return self._tree.children[block]

    def preorder(self) -> list[BasicBlock]:
        """All reachable blocks, each after its dominators."""
        return self._tree.preorder

    def dominates(self, a: BasicBlock, b: BasicBlock) -> bool:
        """Whether every path from the entry to `b` runs through `a`; a block dominates itself."""
        return self._tree.is_ancestor(a, b)

    def strictly_dominates(self, a: BasicBlock, b: BasicBlock) -> bool:
        return a is not b and self.dominates(a, b)

    def value_dominates_use(self, value: Value, use: Use) -> bool:
        """Whether a value is computed on every path to a use of it. A phi reads at its predecessor's end."""
        if not isinstance(value, Instruction):
            return True
        defining = value.block
        if isinstance(use.user, BasicBlock):
            return self.strictly_dominates(defining, use.user)
        if use.user.op == "phi":
            return self.dominates(defining, use.user.attrs["blocks"][use.index])
        if defining is use.user.block:
            return defining.instructions.index(value) < defining.instructions.index(use.user)
        return self.dominates(defining, use.user.block)


def dominance_frontiers(function: Function) -> dict[BasicBlock, list[BasicBlock]]:
    """For every reachable block the joins where its dominance ends, in block order (Cytron et al. 1991)."""
    tree = DominatorTree(function)
    frontiers: dict[BasicBlock, list[BasicBlock]] = {block: [] for block in tree.order}
    for block in filter(tree.reachable, function.blocks):
        for source in tree.predecessors[block]:
            runner: BasicBlock | None = source
            while runner is not None and runner is not tree.idom(block):
                if block not in frontiers[runner]:
                    frontiers[runner].append(block)
                runner = tree.idom(runner)
    return frontiers
