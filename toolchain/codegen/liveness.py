"""Liveness of registers in code whose blocks act for some lanes only.

A register is live for a set of lanes, described by conditions as guards are. Walking backwards, a write
under a guard ends the liveness of the lanes that it writes, and leaves the others. So a slot that both sides
of a branch write is dead before the branch, and a value that only the lanes of one side read does not stand
in the way of what the other side writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from qgpu.toolchain.codegen.registers import Guard, GuardLiteral, Register
from qgpu.toolchain.codegen.tiles import Tile

Lanes = frozenset[GuardLiteral]
Live = dict[Register, list[Lanes]]
"""For every live register the sets of lanes that will read it; their union counts."""

EVERY: Lanes = frozenset()
_MANY = 12
"""A register live for more sets of lanes than this is taken to be live for all."""


@dataclass(frozen=True, eq=False)
class _Edge:
    """A way from a tile to another: `nobody` are lanes of which there are none when it is taken."""

    source: Tile
    nobody: Lanes | None = None


def _edges_to(tiles: Sequence[Tile]) -> dict[Tile, list[_Edge]]:
    edges: dict[Tile, list[_Edge]] = {tile: [] for tile in tiles}
    for tile in tiles:
        if tile.next is not None:
            edges[tile.next].append(_Edge(tile, _voters(tile) if tile.taken is not tile.next else None))
        if tile.taken is not None:
            edges[tile.taken].append(_Edge(tile))
    return edges


def _voters(tile: Tile) -> Lanes | None:
    """The lanes that would have made a branch taken, by the predicates after it, if that can be said."""
    if tile.taken is None or tile.scalar:
        return None
    constant = tile.routing.expression.moved
    if isinstance(constant, int) and constant:
        return frozenset(tile.guard) if tile.predicate is None else None
    own = GuardLiteral(tile.predicate, True) if tile.predicate else None
    if own is None or ~own in tile.guard:
        return None
    return frozenset((*tile.guard, own))


def live_after(tiles: Sequence[Tile]) -> dict[Tile, Live]:
    """The registers that are live after each tile; pinned ones, which always are, are left out.

    Every read is followed backwards until writes have covered its lanes, or to where that was done before.
    """
    after: dict[Tile, Live] = {tile: {} for tile in tiles}
    edges = _edges_to(tiles)
    single = _written_once(tiles)
    for tile in tiles:
        for register, lanes in _reads(tile):
            if not register.pinned:
                _follow(register, tile, lanes, after, edges, register in single)
    return after


def _follow(
    register: Register,
    reader: Tile,
    lanes: Lanes,
    after: dict[Tile, Live],
    edges: dict[Tile, list[_Edge]],
    single: bool,
) -> None:
    pending = [(reader, lanes)]
    while pending:
        tile, wanted = pending.pop()
        for edge in edges[tile]:
            previous = edge.source
            if edge.nobody is not None and edge.nobody <= wanted:
                continue
            known = after[previous].get(register)
            if known is None:
                after[previous][register] = [wanted]
            elif not _added(known, wanted):
                continue
            here = register is previous.data or register is previous.predicate
            if here and (single or previous.scalar):
                continue
            for passed in _before(wanted, previous):
                if here:
                    pending += [(previous, rest) for rest in _difference(passed, previous.guard)]
                else:
                    pending.append((previous, passed))


def _added(known: list[Lanes], lanes: Lanes) -> bool:
    """Add lanes to a union; returns whether it has grown."""
    if any(member <= lanes for member in known):
        return False
    if len(known) >= _MANY:
        known[:] = [EVERY]
    else:
        known[:] = [member for member in known if not lanes <= member] + [lanes]
    return True


def _written_once(tiles: Iterable[Tile]) -> set[Register]:
    """Registers with one writer: who reads them has run it, so that before it they are dead for all lanes."""
    count = Counter(register for tile in tiles for register in written(tile))
    return {register for register, writers in count.items() if writers == 1}


def written(tile: Tile) -> tuple[Register, ...]:
    """The registers that a tile writes."""
    return tuple(register for register in (tile.data, tile.predicate) if register is not None)


def forget(lanes: Lanes, tile: Tile) -> Lanes:
    """Lanes in terms of the predicates before a tile: what is said of the one it writes is dropped."""
    predicate = tile.predicate
    if predicate is None or not lanes or not any(literal.register is predicate for literal in lanes):
        return lanes
    return frozenset(literal for literal in lanes if literal.register is not predicate)


def _before(lanes: Lanes, tile: Tile) -> Sequence[Lanes]:
    """Lanes in terms of the predicates before a tile: those for which it wrote one, and the others."""
    rest = forget(lanes, tile)
    if rest is lanes:
        return (lanes,)
    written_ = [rest.union(tile.guard)] if rest.isdisjoint(tile.outside) else []
    return [*written_, *_difference(lanes, tile.guard)]


def _difference(lanes: Lanes, guard: Guard) -> Iterator[Lanes]:
    """lanes without those of the guard: they fail its first literal, or its second but not its first, ..."""
    if any(~literal in lanes for literal in guard):
        yield lanes
        return
    held = set(lanes)
    for literal in guard:
        if literal not in lanes:
            yield frozenset((*held, ~literal))
            held.add(literal)


def _reads(tile: Tile) -> Iterator[tuple[Register, Lanes]]:
    lanes = frozenset(tile.guard)
    for register in tile.routing.registers:
        yield register, EVERY if register.kind == "uniform" else lanes
    for index, literal in enumerate(tile.guard):
        yield literal.register, frozenset(tile.guard[:index])
