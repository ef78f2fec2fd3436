"""Graph algorithms under the analyses, over any hashable nodes.

They are written out here rather than taken from networkx because importing that takes longer than compiling a
kernel; the tests hold them against networkx.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Edges = Callable[[Node], Iterable[Node]]


def postorder(root: Node, successors: Edges[Node]) -> list[Node]:
    """The nodes reachable from the root, each after those a depth-first walk reaches from it."""
    result: list[Node] = []
    seen = {root}
    stack = [(root, iter(list(successors(root))))]
    while stack:
        node, rest = stack[-1]
        following = next((other for other in rest if other not in seen), None)
        if following is None:
            result.append(node)
            stack.pop()
            continue
        seen.add(following)
        stack.append((following, iter(list(successors(following)))))
    return result


def immediate_dominators(order: Sequence[Node], predecessors: Edges[Node]) -> dict[Node, Node | None]:
    """The immediate dominator of every node of a reverse postorder; None for its first, the root.

    Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm (2001).
    """
    number = {node: index for index, node in enumerate(order)}
    idom = {order[0]: order[0]}

    def intersect(a: Node, b: Node) -> Node:
        while a != b:
            while number[a] > number[b]:
                a = idom[a]
            while number[b] > number[a]:
                b = idom[b]
        return a

    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            known = [source for source in predecessors(node) if source in idom]
            new = known[0]
            for source in known[1:]:
                new = intersect(new, source)
            changed |= idom.get(node) != new
            idom[node] = new
    return {node: idom[node] if index else None for index, node in enumerate(order)}


def strongly_connected_components(nodes: Sequence[Node], successors: Edges[Node]) -> list[list[Node]]:
    """The components, each in the order of `nodes`; one comes after those it has edges to (Kosaraju)."""
    known = set(nodes)
    inside: Edges[Node] = lambda node: [other for other in successors(node) if other in known]  # noqa: E731
    finished: dict[Node, None] = {}
    for node in nodes:
        if node not in finished:
            finished.update(dict.fromkeys(n for n in postorder(node, inside) if n not in finished))
    sources: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for other in inside(node):
            sources[other].append(node)
    component: dict[Node, int] = {}
    count = 0
    for node in reversed(finished):
        if node in component:
            continue
        members = postorder(node, lambda n: [source for source in sources[n] if source not in component])
        component.update(dict.fromkeys(members, count))
        count += 1
    return [[node for node in nodes if component[node] == index] for index in reversed(range(count))]


class Tree:
    """A dominator tree given by each node's parent; `dominates` is two comparisons of preorder numbers."""

    def __init__(self, parents: Mapping[Node, Node | None]) -> None:
        self.parents = parents
        self.children: dict[Hashable, list] = {node: [] for node in parents}
        for node, parent in parents.items():
            if parent is not None:
                self.children[parent].append(node)
        root = next(node for node, parent in parents.items() if parent is None)
        self.preorder: list = []
        self._interval: dict[Hashable, tuple[int, int]] = {}
        self._number(root)

    def _number(self, root: Hashable) -> None:
        first: dict[Hashable, int] = {}
        stack: list[tuple[Hashable, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                self._interval[node] = (first[node], len(first))
                continue
            first[node] = len(first)
            self.preorder.append(node)
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(self.children[node]))

    def __contains__(self, node: Hashable) -> bool:
        return node in self._interval

    def is_ancestor(self, a: Hashable, b: Hashable) -> bool:
        """Whether `a` is `b` or above it."""
        first, end = self._interval[a]
        return first <= self._interval[b][0] < end
