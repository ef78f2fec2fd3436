"""Scheduling: the order of a region's blocks, in which slots are read before they are overwritten.

Blocks keep the order of the source except where a value is computed in a slot early: whoever reads the slot's
old content comes first. The block that decides the branch is the last. Where these demands contradict each
other, one of them is given up and placing starts again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from qgpu.ir.analysis.graph import strongly_connected_components
from qgpu.toolchain.codegen.memory_order import MemoryOrder
from qgpu.toolchain.codegen.nodes import Condition, Node, NodeGuard, Slot
from qgpu.toolchain.codegen.places import Decisions, Places, RetryError, last_step, overlap
from qgpu.toolchain.codegen.refuse import refuse
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.selection import Draft, Selection, narrowing_set


@dataclass(eq=False)
class _Writes:
    """The sets of one slot in a region, in order, and the blocks that write for each."""

    sets: list[Node]
    drafts: list[list[Draft]]


def schedule(selection: Selection, places: Places, decisions: Decisions) -> dict[Region, list[Draft]] | None:
    """Order the drafts of all regions; None where decisions had to be added.

    Raises:
        DiagnosticError: there is no order of a region, and no demand is left to take away.
    """
    ordered: dict[Region, list[Draft]] = {}
    for region, drafts in selection.drafts.items():
        try:
            ordered[region] = Scheduler(region, drafts, places, decisions).run()
        except RetryError:
            continue
    return ordered if len(ordered) == len(selection.drafts) else None


class Scheduler:
    """Orders the drafts of one region."""

    def __init__(self, region: Region, drafts: list[Draft], places: Places, decisions: Decisions) -> None:
        self.region = region
        self.drafts = drafts
        self.places = places
        self.decisions = decisions
        self.draft_of = {node: draft for draft in drafts for node in draft.covers}
        self.after: dict[Draft, dict[Draft, None]] = {draft: {} for draft in drafts}
        self.writes = self._writes()

    def run(self) -> list[Draft]:
        """The drafts in an order that keeps every demand.

        Raises:
            RetryError: there is none; a decision was added that takes one of the demands away.
            DiagnosticError: no demand is left to take away.
        """
        self._order_operands()
        self._order_memory()
        self._order_slots()
        self._order_branch()
        return self._sorted()

    def _before(self, first: Draft, second: Draft) -> None:
        if first is not second:
            self.after[first][second] = None

    def _order_operands(self) -> None:
        for draft in self.drafts:
            read = [*draft.leaves, *(c for c, _ in self._guard(draft) if isinstance(c, Node))]
            for node in read:
                if node in self.draft_of:
                    self._before(self.draft_of[node], draft)
            if draft.root.over in self.draft_of:
                self._all_before([self.draft_of[draft.root.over]], [draft])

    def _guard(self, draft: Draft) -> NodeGuard:
        if draft.root.uniform:
            return ()
        return self.region.guard if draft.root.guard is None else draft.root.guard

    def _order_memory(self) -> None:
        fences = [node.order for node in self.region.nodes if node.kind == "fence"]
        order = MemoryOrder()
        for draft in self.drafts:
            effects = [node for node in draft.covers if node.access or node.kind == "trap"]
            if draft.access or effects:
                epoch = sum(fence < draft.root.order for fence in fences)
                for earlier in order.add(draft, effects, epoch):
                    self._before(earlier, draft)

    # Slots

    def _writes(self) -> dict[Slot, _Writes]:
        found: dict[Slot, _Writes] = {}
        for node in self.region.nodes:
            if node.kind != "set" or node.slot is None:
                continue
            writer = self.draft_of.get(self.places.writers.get(node, node))
            writes = found.setdefault(node.slot, _Writes([], []))
            writes.sets.append(node)
            writes.drafts.append(list(self._with_bases(writer)) if writer else [])
        return found

    def _with_bases(self, writer: Draft) -> Iterator[Draft]:
        """A block that writes a slot, and those whose results in it are overwritten."""
        yield writer
        if writer.root.over in self.draft_of:
            yield from self._with_bases(self.draft_of[writer.root.over])

    def _order_slots(self) -> None:
        for writes in self.writes.values():
            for earlier, later in zip(writes.drafts, writes.drafts[1:], strict=False):
                self._all_before(earlier, later)
        for draft in self.drafts:
            for slot, version in self._read_slots(draft):
                writes = self.writes.get(slot)
                if writes and version < len(writes.drafts):
                    self._all_before([draft], writes.drafts[version])
                if writes and version > 0:
                    self._all_before(writes.drafts[version - 1], [draft])

    def _all_before(self, earlier: list[Draft], later: list[Draft]) -> None:
        """Order writes and reads of a register, but for those of different lanes."""
        for first in earlier:
            for second in later:
                if overlap(self._stable_guard(first), self._stable_guard(second)):
                    self._before(first, second)

    def _stable_guard(self, draft: Draft) -> NodeGuard:
        """The guard's conditions that no block of the region but their own writes."""
        return tuple(
            (condition, polarity)
            for condition, polarity in self._guard(draft)
            if isinstance(condition, Node) and condition.slot is None
        )

    def _read_slots(self, draft: Draft) -> Iterator[tuple[Slot, int]]:
        """The slots that a draft reads, each with the number of sets of it that come before in the region."""
        for node in draft.leaves:
            yield from self._slot_version(node)
        written = self._narrowed(draft)
        for condition, _ in self._guard(draft):
            yield from ((slot, v) for slot, v in self._slot_version(condition) if slot is not written)

    def _narrowed(self, draft: Draft) -> Slot | None:
        """A slot of the guard that a block need not read before it is written: the lanes left are its lanes.

        That is the slot whose first step a joined condition follows (`join_condition`), and the slot that is
        set to the condition of a branch on its own: then the branch is for the lanes that are left.
        """
        set_ = (
            self.places.computed.get(last_step(draft.root))
            if draft.root.over
            else narrowing_set(draft.root, self.region)
        )
        return set_.slot if set_ else None

    def _slot_version(self, read: Condition) -> Iterator[tuple[Slot, int]]:
        if isinstance(read, Slot):
            yield read, 0
            return
        local = read.block is self.region.block
        if read in self.places.aliases and read.slot:
            yield read.slot, self._sets_before(read) if local else 0
        set_ = self.places.computed.get(read)
        if set_ and set_.slot:
            yield set_.slot, self.writes[set_.slot].sets.index(set_) + 1 if local else 0

    def _sets_before(self, get: Node) -> int:
        assert get.slot
        writes = self.writes.get(get.slot)
        return sum(set_.order < get.order for set_ in writes.sets) if writes else 0

    def _order_branch(self) -> None:
        last = next((draft for draft in self.drafts if draft.branch or draft.root.kind == "branch"), None)
        for draft in self.drafts:
            if last is not None:
                self._before(draft, last)

    # Order

    def _sorted(self) -> list[Draft]:
        waiting = dict.fromkeys(self.drafts, 0)
        for draft in self.drafts:
            for other in self.after[draft]:
                waiting[other] += 1
        position = {draft: index for index, draft in enumerate(self.drafts)}
        ready = [position[draft] for draft, count in waiting.items() if count == 0]
        order: list[Draft] = []
        while ready:
            draft = self.drafts[heapq.heappop(ready)]
            order.append(draft)
            for other in self.after[draft]:
                waiting[other] -= 1
                if waiting[other] == 0:
                    heapq.heappush(ready, position[other])
        if len(order) < len(self.drafts):
            raise self._given_up()
        return order

    def _given_up(self) -> RetryError:
        """Take away the cheapest demand of a contradiction."""
        components = strongly_connected_components(self.drafts, lambda draft: self.after[draft])
        circle = next(component for component in components if len(component) > 1)
        choices = (choice for choice in self._choices(circle) if choice[2] not in choice[1])
        cheapest = min(choices, key=lambda choice: choice[0], default=None)
        if cheapest is None:
            raise refuse("no order of the blocks keeps what each of them reads", circle[0].root.loc)
        _, given_up, node = cheapest
        given_up.add(node)
        return RetryError()

    def _choices(self, circle: list[Draft]) -> Iterator[tuple[int, set[Node], Node]]:
        """The demands within a circle, each with the passes that giving it up costs."""
        for draft in circle:
            for node in draft.covers:
                if node in self.places.computed:
                    yield (1 if node.uniform else 3), self.decisions.unplaced, self.places.computed[node]
            if draft.branch:
                decided = draft.branch in self.decisions.detached
                given_up = self.decisions.alone if decided else self.decisions.detached
                yield (1 if draft.branch.uniform else 2), given_up, draft.branch
            for node in draft.leaves:
                if node in self.places.aliases:
                    yield (2 if node.uniform else 4), self.decisions.copied, node
                if node in self.places.computed:
                    yield (2 if node.uniform else 4), self.decisions.unplaced, self.places.computed[node]
            yield from self._guard_choices(draft)

    def _guard_choices(self, draft: Draft) -> Iterator[tuple[int, set[Node], Node]]:
        for condition, _ in self._guard(draft):
            if not isinstance(condition, Node):
                continue
            if condition in self.places.aliases:
                yield 4, self.decisions.copied, condition
            if condition in self.places.computed:
                yield 5, self.decisions.unplaced, self.places.computed[condition]
