"""Post-dominator tree: which blocks every path from a block to the kernel's end runs through."""

from __future__ import annotations

from qgpu.ir.analysis.cfg import postorder, reachable_blocks
from qgpu.ir.analysis.graph import Tree, immediate_dominators, strongly_connected_components
from qgpu.ir.analysis.graph import postorder as graph_postorder
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function

EXIT = "exit"


class PostDominatorTree:
    """Post-dominators of the reachable blocks, rooted in a virtual exit that every `ret` and `trap` leads to.

    A loop that is never left gets an edge to the exit from its last block, so that every block has a place in
    the tree.
    """

    def __init__(self, function: Function) -> None:
        blocks = reachable_blocks(function)
        self._ends = self._find_ends(function, blocks)
        sources: dict[BasicBlock | str, list[BasicBlock]] = {block: [] for block in blocks}
        sources[EXIT] = self._ends
        for block in blocks:
            for successor in block.successors:
                sources[successor].append(block)
        order = graph_postorder(EXIT, sources.__getitem__)[::-1]
        self._ipdom = immediate_dominators(order, self._targets)
        self._tree = Tree(self._ipdom)

    def _find_ends(self, function: Function, blocks: list[BasicBlock]) -> list[BasicBlock]:
        """The blocks with an edge to the virtual exit: one of each component that no edge leaves."""
        rank = {block: index for index, block in enumerate(postorder(function))}
        ends: list[BasicBlock] = []
        for component in strongly_connected_components(blocks, lambda block: block.successors):
            if all(successor in component for block in component for successor in block.successors):
                ends.append(min(component, key=rank.__getitem__))
        return sorted(ends, key=blocks.index)

    def _targets(self, node: BasicBlock | str) -> list[BasicBlock | str]:
        assert isinstance(node, BasicBlock)
        return [*node.successors, *([EXIT] if node in self._ends else [])]

    def ipdom(self, block: BasicBlock) -> BasicBlock | None:
        """The immediate post-dominator; None where that is the kernel's end."""
        found = self._ipdom[block]
        return found if isinstance(found, BasicBlock) else None

    def post_dominates(self, a: BasicBlock, b: BasicBlock) -> bool:
        """Whether every path from `b` to the end runs through `a`; a block post-dominates itself."""
        return self._tree.is_ancestor(a, b)

    def control_dependences(self, branch: BasicBlock) -> dict[BasicBlock, list[BasicBlock]]:
        """For each successor of a branching block the blocks that run because it was chosen.

        Those are the blocks on the path up the tree from the successor to the branch's immediate
        post-dominator, which is left out (Ferrante, Ottenstein, Warren 1987).
        """
        result: dict[BasicBlock, list[BasicBlock]] = {}
        for successor in branch.successors:
            chain: list[BasicBlock] = []
            runner: BasicBlock | None = successor
            while runner is not None and runner is not self.ipdom(branch):
                chain.append(runner)
                runner = self.ipdom(runner)
            result[successor] = chain
        return result
