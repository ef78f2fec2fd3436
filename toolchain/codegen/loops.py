"""The ends of loops that threads leave one by one, with fewer blocks.

A linearised loop keeps its lanes in a predicate, `stay`. Its last block computes who goes on, and branches:
if anyone does, to blocks that save what the others leave with, clear `stay` for them and go back; if no one
does, to blocks that save the same and leave the loop.

- Where nothing is to be saved, the condition is computed in `stay`, and the branch goes back itself.
- Else both ways save in the same blocks: they are passed over while no one leaves, and the first block of
  the loop leaves it when it finds no lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qgpu.toolchain.codegen.registers import GuardLiteral, Register
from qgpu.toolchain.codegen.splicing import Place, signature, sources_of
from qgpu.toolchain.codegen.tiles import Tile


@dataclass(frozen=True)
class _End:
    """The end of a loop.

    Attributes:
        branch: the tile that computes who goes on.
        stay: the predicate of the lanes in the loop.
        saving: the tiles on the way back that come before `clear`.
        clear: the tile that clears `stay` in the lanes that leave, the last on the way back.
        leaving: the tiles on the way out that do the same as `saving`.
        header, after: where the ways lead.
    """

    branch: Tile
    stay: Register
    saving: tuple[Tile, ...]
    clear: Tile
    leaving: tuple[Tile, ...]
    header: Tile
    after: Tile

    @property
    def goes_on(self) -> Register:
        assert self.branch.predicate is not None
        return self.branch.predicate


def shorten_loops(tiles: list[Tile], place: Place) -> None:
    """Rewrite the ends of loops, in place; tiles have their registers' numbers already."""
    sources = sources_of(tiles)
    for branch in list(tiles):
        end = _end(branch, sources, place)
        if end is None or _is_read_from(end.after, end.stay, frozenset(branch.guard)):
            continue
        if not end.saving:
            _compute_in_place(end, tiles, sources)
        elif _may_leave_by(end.header, end):
            end.branch.taken, end.branch.next = None, end.saving[0]
            end.saving[0].idle, end.header.idle = end.header, end.after
        remove_unreachable(tiles)
        sources = sources_of(tiles)


def remove_unreachable(tiles: list[Tile]) -> None:
    """Take out the tiles that no way leads to from the first."""
    reached, pending = {tiles[0]}, [tiles[0]]
    while pending:
        new = [tile for tile in pending.pop().successors if tile not in reached]
        reached.update(new)
        pending += new
    tiles[:] = [tile for tile in tiles if tile in reached]


def _end(branch: Tile, sources: dict[Tile, list[Tile]], place: Place) -> _End | None:
    if branch.taken is None or branch.next is None or branch.scalar or branch.predicate is None:
        return None
    way = _way(branch.taken, branch, sources)
    clear = way[-1] if way else None
    if clear is None or clear.next is None or clear.predicate is None or clear.routing.expression.moved != 0:
        return None
    own = GuardLiteral(branch.predicate, True)
    leaving_lanes = {*(literal for literal in branch.guard if literal.register is not own.register), ~own}
    if GuardLiteral(clear.predicate, True) not in branch.guard or clear.data or clear.touches_memory:
        return None
    if any(set(tile.guard) != leaving_lanes for tile in way):
        return None
    saving = way[:-1]
    leaving = _way(branch.next, branch, sources)[: len(saving)]
    if [signature(tile, place) for tile in saving] != [signature(tile, place) for tile in leaving]:
        return None
    after = leaving[-1].next if leaving else branch.next
    if after is None:
        return None
    return _End(branch, clear.predicate, tuple(saving), clear, tuple(leaving), clear.next, after)


def _way(first: Tile, source: Tile, sources: dict[Tile, list[Tile]]) -> list[Tile]:
    """The tiles over lanes from one on that follow each other alone, up to one that clears a predicate."""
    way: list[Tile] = []
    tile: Tile | None = first
    while tile is not None and sources[tile] == [source] and not (tile.scalar or tile.taken or tile.idle):
        way.append(tile)
        if tile.predicate is not None:
            return way
        source, tile = tile, tile.next
    return way


def _is_read_from(first: Tile, predicate: Register, lanes: frozenset[GuardLiteral]) -> bool:
    """Whether a predicate may be read from a tile on, in some of the lanes, before it is written."""
    seen, pending = {first}, [first]
    others = {literal for literal in lanes if literal.register is not predicate}
    while pending:
        tile = pending.pop()
        if any(literal.register is predicate for literal in tile.guard):
            return True
        if tile.predicate is predicate and set(tile.guard) <= others:
            continue
        new = [following for following in tile.successors if following not in seen]
        seen.update(new)
        pending += new
    return False


# A condition computed in place


def _compute_in_place(end: _End, tiles: Sequence[Tile], sources: dict[Tile, list[Tile]]) -> None:
    steps = list(_steps(end, sources))
    readers = [tile for tile in tiles if any(g.register is end.goes_on for g in tile.guard)]
    if not steps or any(tile is not end.clear and tile not in steps for tile in readers):
        return
    stay, goes_on = end.stay, end.goes_on
    for tile in steps:
        tile.guard = tuple(literal for literal in tile.guard if literal.register is not goes_on)
        tile.predicate = stay
    end.branch.taken = end.header


def _steps(end: _End, sources: dict[Tile, list[Tile]]) -> Iterator[Tile]:
    """The tiles that compute who goes on, the last first: each but the first in the lanes that are left."""
    tile, own = end.branch, GuardLiteral(end.goes_on, True)
    found: list[Tile] = []
    while tile.predicate is end.goes_on and set(tile.guard) - {own} == set(end.branch.guard) - {own}:
        found.append(tile)
        if own not in tile.guard:
            yield from found
            return
        before = sources[tile]
        if len(before) != 1 or before[0].taken or before[0].idle:
            return
        tile = before[0]


# Ways that save in the same blocks


def _may_leave_by(header: Tile, end: _End) -> bool:
    """Whether the first tile of the loop can leave it: it is for the lanes that stay, and does not branch."""
    stays = set(header.guard) == {g for g in end.branch.guard if g.register is not end.goes_on}
    return stays and not header.scalar and header.taken is None and header.idle in (None, end.after)
