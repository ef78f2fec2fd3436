"""Dominator tree: which blocks every path from the entry to a block runs through."""

from __future__ import annotations

from qgpu.ir.analysis.cfg import ControlFlow, control_flow
from qgpu.ir.analysis.graph import Tree, dominator_tree
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Use, Value


class DominatorTree:
    """Dominators of a function's reachable blocks. Blocks that cannot be reached are in no relation."""

    def __init__(self, function: Function) -> None:
        self.flow = control_flow(function)
        self.order = self.flow.postorder[::-1]
        self.predecessors = {block: list(self.flow.graph.predecessors(block)) for block in self.flow.graph}
        self._tree = self.flow.once(_dominators)

    def reachable(self, block: BasicBlock) -> bool:
        return block in self._tree

    def idom(self, block: BasicBlock) -> BasicBlock | None:
        """The immediate dominator; None for the entry."""
        return self._tree.parents[block]

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


def _dominators(flow: ControlFlow) -> Tree:
    return dominator_tree(flow.graph, flow.entry)


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
