"""Blocks without lanes: where control goes from there, so that runs of them are passed over at once.

A branch over code that no lane would take part in is the same, if that code begins with a block for the lanes
for which it branches: the block goes where the branch would have gone when it finds no lane, and else control
has come to it without a jump.
"""

from __future__ import annotations

from collections.abc import Mapping

from qgpu.toolchain.codegen.allocate import does_nothing, remove_tiles
from qgpu.toolchain.codegen.registers import GuardLiteral
from qgpu.toolchain.codegen.splicing import sources_of
from qgpu.toolchain.codegen.tiles import Tile


def pass_over_idle(tiles: list[Tile]) -> None:
    """Give tiles a way for when no lane takes part, which may replace branches before them."""
    sources = sources_of(tiles)
    position = {tile: index for index, tile in enumerate(tiles)}
    for tile in reversed(tiles):
        if tile.taken is None or position[tile.taken] <= position[tile]:
            continue
        first = _first_of_lanes(tile, sources)
        if first is None or tile.next is None:
            continue
        if first.next is not tile.next:
            first.idle = tile.next
        tile.next, tile.taken = tile.taken, None
    remove_tiles(tiles, {tile for tile in tiles if does_nothing(tile)})
    for tile in tiles:
        end = _end_of_run(tile)
        if end is not tile.next and tile.idle is None and tile.taken is None:
            tile.idle = end


def _first_of_lanes(branch: Tile, sources: Mapping[Tile, list[Tile]]) -> Tile | None:
    """The tile that finds no lane exactly where a branch is not taken, if there is one on the way taken.

    Scalar tiles before it do no harm where there are no lanes: what they write is read by none.
    """
    lanes = _voters(branch)
    if lanes is None or branch.next is branch.taken:
        return None
    source, tile = branch, branch.taken
    while tile is not None and tile.scalar and _is_harmless(tile) and _only(tile, source, sources, lanes):
        source, tile = tile, tile.next
    if tile is None or tile.scalar or set(tile.guard) != lanes or tile.everyone:
        return None
    if tile.idle is not None:
        return tile if tile.idle is branch.next else None
    if not _only(tile, source, sources, lanes):
        return None
    return tile if tile.taken is None or tile.next is branch.next else None


def _is_harmless(tile: Tile) -> bool:
    return not (tile.touches_memory or tile.taken or tile.predicate or tile.trap is not None)


def _only(tile: Tile, source: Tile, sources: Mapping[Tile, list[Tile]], lanes: set[GuardLiteral]) -> bool:
    """Whether the other ways to a tile are taken only where there are lanes for what follows."""
    return all(way is source or _brings_lanes(way, tile, lanes) for way in sources[tile])


def _brings_lanes(source: Tile, tile: Tile, wanted: set[GuardLiteral]) -> bool:
    """Whether a way to a tile is taken only where some lane is among those wanted."""
    if source.complete:
        return source.next is tile and source.taken is not tile
    lanes = _voters(source)
    return source.taken is tile and source.next is not tile and lanes is not None and wanted <= lanes


def _voters(branch: Tile) -> set[GuardLiteral] | None:
    """What holds in exactly the lanes for which a branch is taken, if predicates say that."""
    if branch.taken is None or branch.scalar:
        return None
    constant = branch.routing.expression.moved
    if branch.predicate is None:
        return set(branch.guard) if isinstance(constant, int) and constant else None
    kept = {literal for literal in branch.guard if literal.register is not branch.predicate}
    if len(kept) < len(branch.guard) and GuardLiteral(branch.predicate, True) not in branch.guard:
        return None
    return {*kept, GuardLiteral(branch.predicate, True)}


def _end_of_run(first: Tile) -> Tile | None:
    """The first tile from one on that may find lanes where that one finds none."""
    seen = {first}
    tile = first.next
    if first.scalar or not first.guard:
        return tile
    while tile is not None and tile not in seen and not tile.scalar and set(first.guard) <= set(tile.guard):
        seen.add(tile)
        tile = tile.next if tile.idle is None else tile.idle
    return tile
