"""Post-dominator tree: which blocks every path from a block to the kernel's end runs through."""

from __future__ import annotations

from collections.abc import Hashable

from qgpu.ir.analysis.cfg import ControlFlow, control_flow
from qgpu.ir.analysis.graph import Tree, directed_graph, dominator_tree
from qgpu.ir.analysis.loops import LoopInfo
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


class Reconvergence:
    """Where the threads that a branch parts meet again, in lockstep: at the latest on the loop's back edge.

    That is the immediate post-dominator in the graph in which each loop's back edges go to one virtual latch,
    which leads to all exits of the loop. In a loop whose header also serves an inner one, a block may come on
    every way out, and threads that go round before it still meet those that have passed it.
    """

    def __init__(self, loops: LoopInfo) -> None:
        self._dominators = loops.tree
        edges: dict[Hashable, list[Hashable]] = {EXIT: []}
        for block in loops.tree.order:
            edges[block] = [self._target(block, other) for other in block.successors] or [EXIT]
        for loop in loops.loops:
            edges[_latch(loop.header)] = [self._target(*edge) for edge in loop.exit_edges] or [EXIT]
        self._tree = dominator_tree(directed_graph(edges).reverse(), EXIT)

    def _target(self, source: BasicBlock, target: BasicBlock) -> Hashable:
        return _latch(target) if self._dominators.dominates(target, source) else target

    def of(self, branch: BasicBlock) -> BasicBlock | None:
        """The block where all threads of a branch meet; None where that is a latch or the kernel's end."""
        found = self._tree.parents.get(branch)
        return found if isinstance(found, BasicBlock) else None


def _latch(header: BasicBlock) -> tuple[str, BasicBlock]:
    return ("latch", header)


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
