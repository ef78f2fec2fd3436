"""Pointers that may be null, sorted into classes that share one null pointer.

Merged, compared or kept in memory together, null pointers have to be the same. So a class has one of its
own: far outside of the first buffer or array that its pointers may point to, which keeps them pointers into
that one.
"""

from itertools import pairwise

from qgpu.toolchain.ptx.pointer_flow import is_comparison
from qgpu.toolchain.ptx.pointer_targets import NULL, NullClass, Pointers
from qgpu.toolchain.ptx.ssa import Node


def classify_nulls(pointers: Pointers) -> None:
    """Set `nulls` and `null_stores`, given what pointers may point to."""
    classes = _classes(pointers)
    shared: dict[Node, NullClass] = {}
    for node, targets in pointers.targets.items():
        found = shared.setdefault(classes.root(node), NullClass())
        found.targets |= {target: None for target in targets if target is not NULL}
    for node, targets in pointers.targets.items():
        if NULL in targets:
            pointers.nulls[node] = shared[classes.root(node)]
    for load in _loads(pointers):
        zeros = (store for store in pointers.kept_by(load) if pointers.stored(store) == [NULL])
        pointers.null_stores |= {store: shared[classes.root(load)] for store in zeros}


class _Classes:
    """Disjoint sets of nodes."""

    def __init__(self) -> None:
        self._parents: dict[Node, Node] = {}

    def root(self, node: Node) -> Node:
        while node in self._parents:
            node = self._parents[node]
        return node

    def join(self, first: Node, second: Node) -> None:
        first, second = self.root(first), self.root(second)
        if first is not second:
            self._parents[first] = second


def _classes(pointers: Pointers) -> _Classes:
    """Pointers joined with what they are computed from, loaded from, and compared with."""
    classes, flow, known = _Classes(), pointers.flow, pointers.targets
    for node in known:
        for source in flow.sources[node]:
            if source in known:
                classes.join(node, source)
    for load in _loads(pointers):
        for store in pointers.kept_by(load):
            if store.value in known:
                classes.join(load, store.value)
    for site in filter(is_comparison, flow.rules):
        for first, second in pairwise(node for node in flow.operands(site, "ab") if node in known):
            classes.join(first, second)
    return classes


def _loads(pointers: Pointers) -> list[Node]:
    """The loads of pointers."""
    return [load for load in pointers.flow.loads if load in pointers.targets]
