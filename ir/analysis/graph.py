"""Graphs over any hashable nodes, as the analyses hand them to networkx.

networkx is imported with the first graph, since that takes half as long as compiling a small kernel. Graphs
keep their nodes and edges in the order they are given, so that walks over them are the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import networkx as nx

Node = TypeVar("Node", bound=Hashable)


def directed_graph(edges: Mapping[Node, Iterable[Node]]) -> nx.DiGraph[Node]:
    """The graph of the keys, with edges from each to its successors, which are keys too."""
    import networkx as nx

    graph: nx.DiGraph[Node] = nx.DiGraph()
    graph.add_nodes_from(edges)
    graph.add_edges_from((node, successor) for node, following in edges.items() for successor in following)
    return graph


def postorder(graph: nx.DiGraph[Node], root: Node) -> list[Node]:
    """The nodes reachable from the root, each after those a depth-first walk reaches from it."""
    import networkx as nx

    return list(nx.dfs_postorder_nodes(graph, root))


def nodes_reaching(graph: nx.DiGraph[Node], node: Node) -> set[Node]:
    """The nodes from which a path leads to a node, itself among them."""
    import networkx as nx

    return {node, *nx.ancestors(graph, node)}


def strongly_connected_components(
    nodes: Sequence[Node], successors: Callable[[Node], Iterable[Node]]
) -> list[list[Node]]:
    """The components of the graph that edges between the nodes make.

    Each is in the order of `nodes`, and they come in the order of their first members.
    """
    import networkx as nx

    number = {node: index for index, node in enumerate(nodes)}
    graph = directed_graph({node: [other for other in successors(node) if other in number] for node in nodes})
    components = [sorted(found, key=number.__getitem__) for found in nx.strongly_connected_components(graph)]
    return sorted(components, key=lambda component: number[component[0]])


def dominator_tree(graph: nx.DiGraph[Node], root: Node) -> Tree:
    """The dominator tree of the nodes reachable from the root; siblings are in reverse postorder."""
    import networkx as nx

    above = nx.immediate_dominators(graph, root)
    order = reversed(postorder(graph, root))
    return Tree({node: None if node == root else above[node] for node in order})


class Tree:
    """A tree given by each node's parent, None for the root; whether one is above another is asked in O(1).

    `preorder` lists the nodes, parents first and siblings as given.
    """

    def __init__(self, parents: Mapping[Any, Any]) -> None:
        import networkx as nx

        self.parents = parents
        self.children: dict[Any, list[Any]] = {node: [] for node in parents}
        roots = [node for node, parent in parents.items() if parent is None]
        for node, parent in parents.items():
            if parent is not None:
                self.children[parent].append(node)
        self.preorder: list[Any] = list(nx.dfs_preorder_nodes(directed_graph(self.children), roots[0]))
        self._number = {node: index for index, node in enumerate(self.preorder)}
        self._end = {node: index + 1 for node, index in self._number.items()}
        for node in reversed(self.preorder[1:]):
            self._end[parents[node]] = max(self._end[parents[node]], self._end[node])

    def __contains__(self, node: Hashable) -> bool:
        return node in self._number

    def is_ancestor(self, a: Hashable, b: Hashable) -> bool:
        """Whether `a` is `b` or above it."""
        return self._number[a] <= self._number[b] < self._end[a]
