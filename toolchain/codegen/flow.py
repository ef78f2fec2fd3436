"""Control flow: tiles linked into a program, and the loop over the thread blocks of the grid.

A launch runs the kernel's code for thread block (0, 0, 0) first. At its end the grid loop decides with one
scalar block whether that was the last one; if not, it counts ctaid on, x first, and goes back to the entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from qgpu.toolchain.codegen.arithmetic import total
from qgpu.toolchain.codegen.lowering import Lowered
from qgpu.toolchain.codegen.nodes import GREATER, LESS, Expression, move, word
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.selection import Draft
from qgpu.toolchain.codegen.tiles import Tile, routed, tile_of

_AXES = "xyz"


class Linker:
    """Links the tiles of a function's regions."""

    def __init__(self, lowered: Lowered, drafts: dict[Region, list[Draft]]) -> None:
        self.lowered = lowered
        self.tiles = {region: [tile_of(d, region) for d in drafts[region]] for region in lowered.regions}
        self.end = Tile(routed(move(0)))
        self._idle: dict[Region, Tile] = {}
        for region in lowered.regions:
            self._link(region)

    def run(self) -> list[Tile]:
        """All tiles, the entry first."""
        body = [tile for region in self.lowered.regions for tile in self._region_tiles(region)]
        entry = self._entry(self.lowered.regions[0])
        loop = grid_loop(entry, self.lowered, _preloaded(body))
        for tile in body:
            tile.next = loop[0] if tile.next is self.end else tile.next
            tile.taken = loop[0] if tile.taken is self.end else tile.taken
        tiles = [*body, *loop]
        if entry is self.end:
            entry = loop[0]
        return [entry, *(tile for tile in tiles if tile is not entry)]

    def _region_tiles(self, region: Region) -> list[Tile]:
        return [*self.tiles[region], *([self._idle[region]] if region in self._idle else [])]

    def _link(self, region: Region) -> None:
        tiles = self.tiles[region]
        for tile, following in pairwise(tiles):
            tile.next = following
        targets = [self._entry(successor) for successor in region.successors] or [self.end]
        if not tiles:
            return
        tiles[-1].next = targets[-1]
        if len(targets) > 1:
            tiles[-1].taken = targets[0]

    def _entry(self, region: Region) -> Tile:
        """The first tile at or after a region; an empty loop gets a tile that does nothing."""
        seen: set[Region] = set()
        while not self.tiles[region] and region not in seen:
            seen.add(region)
            if not region.successors:
                return self.end
            region = region.successors[0]
        if self.tiles[region]:
            return self.tiles[region][0]
        if region not in self._idle:
            idle = Tile(routed(move(0)), scalar=True)
            idle.next = idle
            self._idle[region] = idle
        return self._idle[region]


def _preloaded(tiles: Iterable[Tile]) -> set[str]:
    """The names of the special registers that tiles read."""
    return {register.preload for tile in tiles for register in tile.routing.registers if register.preload}


def grid_loop(entry: Tile, lowered: Lowered, read: set[str]) -> list[Tile]:
    """The tiles after the kernel's end: the first is where the kernel goes, the last goes back to the entry.

    `nctaid.total` counts the thread blocks that are left. Of ctaid, the axes up to the last one that the
    kernel reads are counted.
    """
    left = lowered.special("nctaid.total")
    last = Tile(routed(total(left, word(-1))), scalar=True, data=left)
    counted = [axis for axis in _AXES if read & {f"ctaid.{axis}", f"index.{axis}"}]
    indices = [_index_tile(axis, lowered) for axis in _AXES if f"index.{axis}" in read]
    for tile, following in zip(indices, [*indices[1:], entry], strict=True):
        tile.next = following
    again = indices[0] if indices else entry
    counters: list[Tile] = []
    last.taken = again
    if counted:
        axes = _AXES[: _AXES.index(counted[-1]) + 1]
        counters = [tile for axis in axes for tile in _counter_tiles(axis, lowered)]
        _link_counters(counters, again)
        last.taken = counters[0]
    return [last, *counters, *indices]


def _counter_tiles(axis: str, lowered: Lowered) -> list[Tile]:
    """Count an axis on; but for z: is it at its end; then back to 0."""
    counter = lowered.special(f"ctaid.{axis}")
    tiles = [Tile(routed(total(counter, 1)), scalar=True, data=counter)]
    if axis != "z":
        size = lowered.special(f"nctaid.{axis}")
        differs = Expression("cmp", counter, size, relation=LESS | GREATER)
        tiles += [Tile(routed(differs), scalar=True), Tile(routed(move(0)), scalar=True, data=counter)]
    return tiles


def _link_counters(tiles: list[Tile], again: Tile) -> None:
    for tile, following in zip(tiles, [*tiles[1:], again], strict=True):
        tile.next = following
        if tile.data is None:
            tile.taken = again


def _index_tile(axis: str, lowered: Lowered) -> Tile:
    """ctaid * ntid + tid of the next thread block."""
    names = (f"ctaid.{axis}", f"ntid.{axis}", f"tid.{axis}")
    block, size, thread = map(lowered.special, names)
    expression = Expression("mad", block, size, thread)
    return Tile(routed(expression), data=lowered.special(f"index.{axis}"))
