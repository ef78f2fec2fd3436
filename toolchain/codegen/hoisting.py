"""Hoisting: a block that both ways of a branch begin with, done once before the branch.

That of a scalar branch alone: what its ways have in common is for lanes, which it does not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from qgpu.toolchain.codegen.liveness import read, written
from qgpu.toolchain.codegen.splicing import Place, signature, sources_of
from qgpu.toolchain.codegen.tiles import Tile


def hoist_common(tiles: list[Tile], place: Place) -> None:
    """Move blocks up before scalar branches, in place; tiles have their registers' numbers already."""
    sources = sources_of(tiles)
    for branch in list(tiles):
        while (pair := _common(branch, sources, place)) is not None:
            branch = _hoist(branch, pair, tiles)
            sources = sources_of(tiles)


def _common(branch: Tile, sources: Mapping[Tile, list[Tile]], place: Place) -> tuple[Tile, Tile] | None:
    """Two equal tiles, one on each way of a branch, that nothing before them forbids to move."""
    if not branch.scalar or branch.taken is None or branch.next is None or written(branch):
        return None
    taken, following = (list(_movable(tile, branch, sources, place)) for tile in (branch.taken, branch.next))
    pairs = ((a, b) for a in taken for b in following)
    alike = (pair for pair in pairs if signature(pair[0], place) == signature(pair[1], place))
    return next(alike, None)


def _movable(first: Tile, branch: Tile, sources: Mapping[Tile, list[Tile]], place: Place) -> Iterator[Tile]:
    """The pure tiles over lanes on a way that may come first on it."""
    before: list[Tile] = []
    source, tile = branch, first
    while sources[tile] == [source]:
        pure = tile.data is not None and not (tile.scalar or tile.predicate or tile.touches_memory)
        if pure and tile.taken is None and not any(_depend(tile, other, place) for other in before):
            yield tile
        if tile.taken or tile.idle or tile.next is None:
            return
        before.append(tile)
        source, tile = tile, tile.next


def _depend(tile: Tile, before: Tile, place: Place) -> bool:
    """Whether the order of two tiles matters."""
    own, others = set(map(place, written(tile))), set(map(place, written(before)))
    return bool(own & (others | set(map(place, read(before))))) or bool(others & set(map(place, read(tile))))


def _hoist(branch: Tile, pair: Sequence[Tile], tiles: list[Tile]) -> Tile:
    """Put the tile that both of a pair are in the branch's place; returns the branch, which follows."""
    from qgpu.toolchain.codegen.allocate import remove_tiles

    moved = replace(branch)
    remove_tiles([*tiles, moved], set(pair))
    tiles[:] = [tile for tile in tiles if tile not in pair]
    flow = {"next": moved, "taken": None, "idle": None}
    vars(branch).update(vars(replace(pair[0], **flow)))
    tiles.insert(tiles.index(branch) + 1, moved)
    return moved
