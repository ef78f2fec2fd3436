"""Liveness of registers in code whose blocks act for some lanes only.

A register is live for a set of lanes, described by conditions as guards are. Walking backwards, a write
under a guard ends the liveness of the lanes that it writes, and leaves the others. So a slot that both sides
of a branch write is dead before the branch, and a value that only the lanes of one side read does not stand
in the way of what the other side writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from qgpu.toolchain.codegen.places import overlap
from qgpu.toolchain.codegen.registers import Guard, GuardLiteral, Register
from qgpu.toolchain.codegen.tiles import Tile

Lanes = frozenset[GuardLiteral]
Live = dict[Register, frozenset[Lanes]]
"""For every live register the sets of lanes that will read it; their union counts."""

EVERY: Lanes = frozenset()
_MANY = 12
"""A register live for more sets of lanes than this is taken to be live for all."""


@dataclass(eq=False)
class Liveness:
    """The registers live after each tile."""

    after: dict[Tile, Live]


def live_ranges(tiles: Sequence[Tile]) -> Liveness:
    """Solve the data-flow equations by sweeps from the end."""
    single = _written_once(tiles)
    before: dict[Tile, Live] = {tile: {} for tile in tiles}
    after: dict[Tile, Live] = {tile: {} for tile in tiles}
    changed = True
    while changed:
        changed = False
        for tile in reversed(tiles):
            after[tile] = _union(before[successor] for successor in tile.successors)
            new = _before(tile, after[tile], single)
            changed |= new != before[tile]
            before[tile] = new
    return Liveness(after)


def _written_once(tiles: Iterable[Tile]) -> set[Register]:
    """Registers with one writer: who reads them has run it, so that before it they are dead for all lanes."""
    count: dict[Register, int] = {}
    for tile in tiles:
        for register in written(tile):
            count[register] = count.get(register, 0) + 1
    return {register for register, writers in count.items() if writers == 1}


def written(tile: Tile) -> Iterator[Register]:
    """The registers that a tile writes."""
    yield from (register for register in (tile.data, tile.predicate) if register is not None)


def _union(states: Iterable[Live]) -> Live:
    result: dict[Register, set[Lanes]] = {}
    for state in states:
        for register, lanes in state.items():
            result.setdefault(register, set()).update(lanes)
    return {register: _reduced(lanes) for register, lanes in result.items()}


def _reduced(lanes: Iterable[Lanes]) -> frozenset[Lanes]:
    """The same union without members that lie within others."""
    members = set(lanes)
    kept = {a for a in members if not any(b < a for b in members)}
    return frozenset(kept) if len(kept) <= _MANY else frozenset([EVERY])


def _before(tile: Tile, after: Live, single: set[Register]) -> Live:
    result: dict[Register, set[Lanes]] = {}
    killed = set(written(tile))
    for register, lanes in forget(after, tile).items():
        if register in killed:
            lanes = _unwritten(lanes, tile, register in single)
        if lanes:
            result.setdefault(register, set()).update(lanes)
    for register, lanes in _reads(tile):
        result.setdefault(register, set()).add(lanes)
    return {register: _reduced(lanes) for register, lanes in result.items()}


def forget(after: Live, tile: Tile) -> Live:
    """The state in terms of the predicates before the tile: what it says of those it writes is dropped."""
    predicate = tile.predicate
    if predicate is None:
        return after
    return {
        register: frozenset(frozenset(g for g in member if g.register is not predicate) for member in lanes)
        for register, lanes in after.items()
    }


def _unwritten(lanes: frozenset[Lanes], tile: Tile, single: bool) -> frozenset[Lanes]:
    """The lanes among `lanes` that a tile does not write."""
    if single or tile.scalar:
        return frozenset()
    return frozenset(rest for member in lanes for rest in _difference(member, tile.guard))


def _difference(lanes: Lanes, guard: Guard) -> Iterator[Lanes]:
    """lanes without those of the guard: they fail its first literal, or its second but not its first, ..."""
    if not overlap_lanes(lanes, guard):
        yield lanes
        return
    held = set(lanes)
    for literal in guard:
        if literal not in lanes:
            yield frozenset((*held, ~literal))
            held.add(literal)


def overlap_lanes(a: Iterable[GuardLiteral], b: Iterable[GuardLiteral]) -> bool:
    """Whether some lane may be in both."""
    return overlap(((g.register, g.polarity) for g in a), ((g.register, g.polarity) for g in b))


def _reads(tile: Tile) -> Iterator[tuple[Register, Lanes]]:
    lanes = frozenset(tile.guard)
    for register in tile.routing.registers:
        yield register, EVERY if register.kind == "uniform" else lanes
    for index, literal in enumerate(tile.guard):
        yield literal.register, frozenset(tile.guard[:index])
