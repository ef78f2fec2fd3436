"""The control-flow graph of a function, and orders over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from qgpu.ir.analysis import graph
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function

if TYPE_CHECKING:
    import networkx as nx

Result = TypeVar("Result")
Edges = Mapping[BasicBlock, tuple[BasicBlock, ...]]


class ControlFlow:
    """The blocks of a function and the edges between them, at the time they were looked at.

    Attributes:
        edges: the successors of every block, in block order.
        postorder: the blocks reachable from the entry, each after those a depth-first walk reaches from it.
        graph: the graph of the reachable blocks, in block order. Nobody changes it.
    """

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        entry = next(iter(edges))
        self.graph: nx.DiGraph[BasicBlock] = graph.directed_graph(edges)
        self.postorder = graph.postorder(self.graph, entry)
        self.graph.remove_nodes_from(set(edges).difference(self.postorder))
        self._results: dict[Callable[..., Any], Any] = {}

    @property
    def entry(self) -> BasicBlock:
        return self.postorder[-1]

    def once(self, analysis: Callable[[ControlFlow], Result]) -> Result:
        """What an analysis that depends on the graph alone finds; computed when it is first asked for."""
        if analysis not in self._results:
            self._results[analysis] = analysis(self)
        return self._results[analysis]


def control_flow(function: Function) -> ControlFlow:
    """The control flow of a function as it is now, built anew only if blocks or edges have changed."""
    edges = {block: block.successors for block in function.blocks}
    known = function.control_flow
    if not isinstance(known, ControlFlow) or list(known.edges.items()) != list(edges.items()):
        known = function.control_flow = ControlFlow(edges)
    return known


def postorder(function: Function) -> list[BasicBlock]:
    """The blocks reachable from the entry, each after those a depth-first walk reaches from it."""
    return list(control_flow(function).postorder)


def reverse_postorder(function: Function) -> list[BasicBlock]:
    """The reachable blocks, each before its successors except along back edges."""
    return postorder(function)[::-1]


def reachable_blocks(function: Function) -> list[BasicBlock]:
    """The blocks reachable from the entry, in block order."""
    return list(control_flow(function).graph)
