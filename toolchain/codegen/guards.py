"""Guards: literals that say nothing new are left out, so that their predicates are free for others.

Lanes that leave a loop clear the slot that keeps them in it. From there on the slot alone tells them from
those that stay, and the condition on which they left need not be kept: after `clear s` under the guard
[g, s, !c], every lane of g and s has c.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import Condition, NodeGuard, Slot
from qgpu.toolchain.codegen.regions import Region


@dataclass(frozen=True)
class _Fact:
    """In every lane of `lanes` in which the slot is true, the literal holds."""

    lanes: frozenset[tuple[Condition, bool]]
    slot: Slot
    literal: tuple[Condition, bool]

    def survives(self, changed: set[Condition], set_true: set[Slot]) -> bool:
        """Whether the fact holds after some conditions are computed anew and some slots may be set."""
        about = {self.literal[0], *(condition for condition, _ in self.lanes)}
        return not (about & changed) and self.slot not in set_true


def shorten_guards(lowered: Lowered) -> None:
    """Leave out the literals of guards that follow from the others."""
    facts = _facts_at_start(lowered)
    shorter = {region: _shortened(region.guard, facts[region]) for region in lowered.regions}
    for region in lowered.regions:
        region.guard = shorter[region]


def _shortened(guard: NodeGuard, facts: Iterable[_Fact]) -> NodeGuard:
    """A guard without the literals that follow from others, none of which is left out on its account."""
    left_out: set[tuple[Condition, bool]] = set()
    needed: set[tuple[Condition, bool]] = set()
    for literal in guard:
        others = set(guard) - {literal}
        known = (f for f in facts if f.literal == literal and (f.slot, True) in others - left_out)
        fact = next((f for f in known if f.lanes <= others), None)
        if fact is not None and literal not in needed:
            left_out.add(literal)
            needed |= {*fact.lanes, (fact.slot, True)}
    return tuple(literal for literal in guard if literal not in left_out)


def _facts_at_start(lowered: Lowered) -> dict[Region, frozenset[_Fact]]:
    """What holds on every way to a region: an intersection, from all facts downward."""
    sources: dict[Region, list[Region]] = {region: [] for region in lowered.regions}
    for region in lowered.regions:
        for successor in region.successors:
            sources[successor].append(region)
    made = {region: _made(region) for region in lowered.regions}
    every = frozenset(fact for facts in made.values() for fact in facts)
    at_end = dict.fromkeys(lowered.regions, every)
    at_start: dict[Region, frozenset[_Fact]] = {}
    changed = True
    while changed:
        changed = False
        for region in lowered.regions:
            ways = [at_end[source] for source in sources[region]]
            at_start[region] = frozenset.intersection(*ways) if ways else frozenset()
            end = _kept(region, at_start[region]) | made[region]
            changed |= end != at_end[region]
            at_end[region] = end
    return at_start


def _changes(region: Region) -> tuple[set[Condition], set[Slot]]:
    """The conditions that a region computes or sets, and the slots that it may make true."""
    sets = [node for node in region.nodes if node.kind == "set"]
    slots = {node.slot for node in sets if node.slot}
    set_true = {node.slot for node in sets if node.slot and node.expression.moved != 0}
    return {*region.nodes, *slots}, set_true


def _kept(region: Region, facts: frozenset[_Fact]) -> frozenset[_Fact]:
    changed, set_true = _changes(region)
    return frozenset(fact for fact in facts if fact.survives(changed, set_true))


def _made(region: Region) -> frozenset[_Fact]:
    """The facts that a region makes true by clearing a slot of its own guard."""
    changed, set_true = _changes(region)
    facts: set[_Fact] = set()
    for slot in changed:
        if not isinstance(slot, Slot) or slot in set_true or (slot, True) not in region.guard:
            continue
        for condition, polarity in region.guard:
            lanes = frozenset(region.guard) - {(slot, True), (condition, polarity)}
            fact = _Fact(lanes, slot, (condition, not polarity))
            if condition is not slot and fact.survives(changed, set()):
                facts.add(fact)
    return frozenset(facts)
