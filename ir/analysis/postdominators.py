"""Post-dominator tree: which blocks every path from a block to the kernel's end runs through."""

from __future__ import annotations

from qgpu.ir.analysis.cfg import ControlFlow, control_flow
from qgpu.ir.analysis.graph import Tree, directed_graph, dominator_tree
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function

EXIT = "exit"


class PostDominatorTree:
    """Post-dominators of the reachable blocks, rooted in a virtual exit that every `ret` and `trap` leads to.

    A loop that is never left gets an edge to the exit from its last block, so that every block has a place in
    the tree.
    """

    def __init__(self, function: Function) -> None:
        self._tree = control_flow(function).once(_post_dominators)

    def ipdom(self, block: BasicBlock) -> BasicBlock | None:
        """The immediate post-dominator; None where that is the kernel's end."""
        found = self._tree.parents[block]
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


def _post_dominators(flow: ControlFlow) -> Tree:
    """The dominator tree of the reversed graph."""
    ends = _ends(flow)
    edges = {block: [*flow.edges[block], *([EXIT] if block in ends else [])] for block in flow.graph}
    return dominator_tree(directed_graph({**edges, EXIT: []}).reverse(), EXIT)


def _ends(flow: ControlFlow) -> set[BasicBlock]:
    """The blocks with an edge to the virtual exit: one of each component that no edge leaves."""
    import networkx as nx

    rank = {block: index for index, block in enumerate(flow.postorder)}
    return {min(component, key=rank.__getitem__) for component in nx.attracting_components(flow.graph)}
