"""Places: which register holds each result, so that reads and writes of slots need no copies.

The result of `get` is the slot itself while nobody writes the slot; a value that is `set` is computed in the
slot if nobody needs the slot's old content after that. Both are a question of what lanes do, not blocks: a
write under a guard that contradicts the reader's guard does not touch the reader's lanes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import EFFECTS, Condition, Node, Slot
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.registers import Register

Lanes = frozenset[tuple[Condition, bool]]
"""The lanes for which all of these conditions hold."""


_MANY = 24
"""A slot that has changed for more sets of lanes than this is taken to have changed for all."""


class RetryError(Exception):
    """A decision was added that changes where results are placed."""


@dataclass(eq=False)
class Decisions:
    """What scheduling found out about places; placing heeds it.

    Attributes:
        copied: gets that need a register of their own.
        unplaced: sets whose value is not computed in the slot.
        detached: branches that are not decided by the block that computes their condition.
        alone: branches that are not decided by a copy of their condition either.
        plain: roots of blocks that have no use of the accumulator port.
    """

    copied: set[Node] = field(default_factory=set)
    unplaced: set[Node] = field(default_factory=set)
    detached: set[Node] = field(default_factory=set)
    alone: set[Node] = field(default_factory=set)
    plain: set[Node] = field(default_factory=set)


@dataclass(eq=False)
class Places:
    """Where results go.

    Attributes:
        aliases: gets that read the slot itself.
        writers: sets that are no copies, and the node that computes their value in the slot.
        computed: the sets by those nodes.
    """

    aliases: set[Node] = field(default_factory=set)
    writers: dict[Node, Node] = field(default_factory=dict)
    computed: dict[Node, Node] = field(default_factory=dict)


def place(lowered: Lowered, decisions: Decisions) -> Places:
    """Give every node that has a result its register."""
    count_users(lowered)
    _give_registers(lowered)
    places = Places()
    readers = _Readers(lowered)
    for region in lowered.regions:
        for node in region.nodes:
            if node.kind == "get" and node not in decisions.copied and readers.unchanged(node, region):
                _alias(node, places)
            if node.kind == "set" and node not in decisions.unplaced:
                _compute_in_slot(node, region, places, readers)
    for region in lowered.regions:
        for node in reversed(region.nodes):
            _share_registers(node)
    return places


def _share_registers(node: Node) -> None:
    """A node that overwrites another has the other's registers."""
    base = node.over
    if base is not None:
        node.predicate = node.predicate or base.predicate
        base.data, base.predicate = node.data, node.predicate


def _fresh(node: Node) -> Register | None:
    if node.kind not in ("value", "load", "atomic", "get"):
        return None
    return Register("uniform" if node.uniform else "thread", f"{node.block.name}.{node.order}")


def _alias(node: Node, places: Places) -> None:
    assert node.slot
    if node.uniform == node.slot.uniform:
        node.data = node.slot.data
        node.predicate = node.predicate and node.slot.predicate
        places.aliases.add(node)


def _compute_in_slot(node: Node, region: Region, places: Places, readers: _Readers) -> None:
    slot, value = node.slot, node.expression.moved
    assert slot
    if not isinstance(value, Node) or value.kind not in ("value", "load") or value in places.computed:
        return
    alone = set(value.users) == {node} and value.predicate is None
    if value.block is not region.block or (value.uniform != slot.uniform and not alone):
        return
    if not readers.unchanged_after(value, node, region):
        return
    value.uniform = slot.uniform
    value.data = slot.data
    value.predicate = slot.predicate or value.predicate
    places.writers[node] = value
    places.computed[value] = node


def count_users(lowered: Lowered) -> None:
    """Find the users of every node, counting only those that have an effect in the end."""
    roots = [
        node
        for region in lowered.regions
        for node in region.nodes
        if node.kind in (*EFFECTS, "set", "branch")
    ]
    roots += [c for region in lowered.regions for c, _ in conditions_of(region) if isinstance(c, Node)]
    for region in lowered.regions:
        for node in region.nodes:
            node.users = {}
    seen = set(roots)
    while roots:
        user = roots.pop()
        for node in user.nodes:
            node.users[user] = None
            if node not in seen:
                seen.add(node)
                roots.append(node)


def last_step(node: Node) -> Node:
    """The last of the nodes that overwrite one another, of which a node is one."""
    while (step := next((user for user in node.users if user.over is node), None)) is not None:
        node = step
    return node


def conditions_of(region: Region) -> Iterator[tuple[Condition, bool]]:
    """The members of all guards of a region."""
    yield from region.guard
    for node in region.nodes:
        yield from node.guard or ()


def _give_registers(lowered: Lowered) -> None:
    """New registers for all results and for all conditions of guards; the slot of a get is one too."""
    for slot in lowered.slots:
        slot.predicate = None
    for region in lowered.regions:
        for order, node in enumerate(region.nodes):
            node.order = order
            node.data = _fresh(node)
            node.predicate = None
    conditions = [c for region in lowered.regions for c, _ in conditions_of(region)]
    for condition in conditions:
        condition.predicate = condition.predicate or Register("predicate", "condition")
        if isinstance(condition, Node) and condition.slot:
            slot = condition.slot
            slot.predicate = slot.predicate or Register("predicate", slot.name)


class _Readers:
    """Answers whether the readers of a node elsewhere find the slot as it was."""

    def __init__(self, lowered: Lowered) -> None:
        self._readers: dict[Node, dict[Region, None]] = {}
        self._sets: dict[tuple[Region, Slot], list[Node]] = {}
        self._changes: dict[Region, set[Condition]] = {}
        self._regions = {region.block: region for region in lowered.regions}
        for region in lowered.regions:
            self._index(region)

    def _index(self, region: Region) -> None:
        self._changes[region] = set(region.nodes)
        for condition, _ in conditions_of(region):
            if isinstance(condition, Node):
                self._readers.setdefault(condition, {})[region] = None
        for node in region.nodes:
            if node.kind == "set" and node.slot:
                self._sets.setdefault((region, node.slot), []).append(node)
                self._changes[region].add(node.slot)

    def unchanged(self, get: Node, region: Region) -> bool:
        """Whether every reader of a get in other regions finds the slot unchanged since."""
        assert get.slot
        later = [node for node in self._sets.get((region, get.slot), ()) if node.order > get.order]
        return self._clean(get, get.slot, region, bool(later))

    def unchanged_after(self, value: Node, set_: Node, region: Region) -> bool:
        """Whether every other reader of a value finds it in the slot that the set has put it in."""
        assert set_.slot
        later = [node for node in self._sets[(region, set_.slot)] if node.order > set_.order]
        return self._clean(value, set_.slot, region, bool(later))

    def _clean(self, node: Node, slot: Slot, region: Region, changed: bool) -> bool:
        elsewhere = [r for r in self._reading(node) if r is not region]
        if not elsewhere:
            return True
        changed_for = self._propagate(slot, region, changed)
        return not any(
            overlap(lanes, guard_lanes(reader, slot))
            for reader in elsewhere
            for lanes in changed_for.get(reader, ())
        )

    def _reading(self, node: Node) -> Iterator[Region]:
        yield from self._readers.get(node, ())
        yield from (self._regions[user.block] for user in node.users)

    def _propagate(self, slot: Slot, region: Region, changed: bool) -> dict[Region, set[Lanes]]:
        """The lanes for which the slot has changed on the way from a region to the start of others."""
        reached: dict[Region, set[Lanes]] = {}
        start = {guard_lanes(region, slot)} if changed else set()
        pending = [(other, start) for other in region.successors]
        while pending:
            current, lanes = pending.pop()
            if current is region:
                continue
            known = reached.get(current)
            if known is not None and (lanes <= known or frozenset() in known):
                continue
            reached[current] = _joined(known or set(), lanes)
            leaving = {self._forget(member, current) for member in reached[current]}
            if (current, slot) in self._sets:
                leaving.add(guard_lanes(current, slot))
            pending += [(other, leaving) for other in current.successors]
        return reached

    def _forget(self, lanes: Lanes, region: Region) -> Lanes:
        """Conditions that a region computes anew say nothing of the lanes before it."""
        return frozenset(literal for literal in lanes if literal[0] not in self._changes[region])


def _joined(known: set[Lanes], more: set[Lanes]) -> set[Lanes]:
    """The union of sets of lanes; of many, all lanes."""
    union = known | more
    return union if len(union) <= _MANY else {frozenset()}


def guard_lanes(region: Region, slot: Slot) -> Lanes:
    """The lanes that read or write a slot in a region; all of them for a slot of the thread block."""
    return frozenset() if slot.uniform else frozenset(region.guard)


def overlap(a: Iterable[tuple[Hashable, bool]], b: Iterable[tuple[Hashable, bool]]) -> bool:
    """Whether some lane may be in both: no condition is in one as true and in the other as false."""
    other = set(b)
    return not any((condition, not polarity) in other for condition, polarity in a)
