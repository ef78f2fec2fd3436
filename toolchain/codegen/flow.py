"""Control flow: tiles linked into a program, and the loop over the thread blocks of the grid.

A launch runs the kernel's code for thread block (0, 0, 0) first. At its end the grid loop decides with one
scalar block whether that was the last one; if not, it counts ctaid on, x first, and goes back to the entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from qgpu.toolchain.codegen.arithmetic import total
from qgpu.toolchain.codegen.bounds import NO_ROOMS, Room, Rooms, any_negative, choose_bound
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import EQUAL, Expression, move, word
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.selection import Draft
from qgpu.toolchain.codegen.tiles import Tile, routed, tile_of

_AXES = "xyz"


class Linker:
    """Links the tiles of a function's regions; with `bounds`, guards take few tokens (see `bounds.py`)."""

    def __init__(self, lowered: Lowered, drafts: dict[Region, list[Draft]], bounds: bool = True) -> None:
        self.lowered = lowered
        self.bounds = bounds
        self.tiles = {region: [tile_of(d, region) for d in drafts[region]] for region in lowered.regions}
        self.end = Tile(routed(move(0)))
        self._idle: dict[Region, Tile] = {}
        for region in lowered.regions:
            self._link(region)

    def run(self) -> list[Tile]:
        """All tiles, the entry first."""
        body = [tile for region in self.lowered.regions for tile in self._region_tiles(region)]
        entry = self._entry(self.lowered.regions[0])
        rooms = choose_bound(body, self.lowered) if self.bounds else NO_ROOMS
        loop = grid_loop(entry, self.lowered, _preloaded(body), rooms)
        tiles = [*body, *loop]
        for tile in tiles:
            tile.next = loop[0] if tile.next is self.end else tile.next
            tile.taken = loop[0] if tile.taken is self.end else tile.taken
        first = loop[0] if entry is self.end else entry
        return [first, *(tile for tile in tiles if tile is not first)]

    def _region_tiles(self, region: Region) -> list[Tile]:
        return [*self.tiles[region], *([self._idle[region]] if region in self._idle else [])]

    def _link(self, region: Region) -> None:
        tiles = self.tiles[region]
        targets = [self._entry(successor) for successor in region.successors] or [self.end]
        if not tiles:
            return
        _chain(tiles, targets[-1])
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


def grid_loop(entry: Tile, lowered: Lowered, read: set[str], rooms: Rooms = NO_ROOMS) -> list[Tile]:
    """The tiles after the kernel's end: the first is where the kernel goes, the last goes back to the entry.

    `nctaid.total` counts the thread blocks that are left. Of ctaid, the axes up to the last one that the
    kernel reads are counted; `index.x` (ctaid * ntid + tid) is moved along, and `rooms` are counted down.
    """
    left = lowered.special("nctaid.total")
    last = Tile(routed(total(left, word(-1))), scalar=True, data=left, ends_thread_block=True)
    used = [axis for axis in _AXES if read & {f"ctaid.{axis}", f"index.{axis}"}]
    axes = _AXES[: _AXES.index(used[-1]) + 1] if used else ""
    tiles: list[Tile] = []
    if rooms.outside is not None:
        tiles = [Tile(routed(any_negative(rooms)), scalar=True, data=rooms.outside)]
        _chain(tiles, entry)
    again = following = tiles[0] if tiles else entry
    for axis in reversed(axes):
        own = [room for room in rooms.rooms if room.axis == axis]
        counting = _count(axis, lowered, f"index.{axis}" in read, own, again, following)
        tiles = [*counting, *tiles]
        following = counting[0]
    last.taken = following
    return [last, *tiles]


def _count(
    axis: str, lowered: Lowered, indexed: bool, rooms: Sequence[Room], again: Tile, following: Tile
) -> list[Tile]:
    """Count one axis on: to `again`, or where the axis begins anew, to the next axis at `following`."""
    counter, size = lowered.special(f"ctaid.{axis}"), lowered.special(f"ntid.{axis}")
    count = Tile(routed(total(counter, 1)), scalar=True, data=counter)
    forth = [_moved(axis, lowered, size)] if indexed else []
    back_by = lowered.special(f"-ntid.{axis}") if rooms else 0
    forth += [Tile(routed(total(room.left, back_by)), scalar=True, data=room.left) for room in rooms]
    _chain(forth, again)
    again = forth[0] if forth else again
    if axis == "z":
        count.next = again
        return [count, *forth]
    ended = Expression("cmp", counter, lowered.special(f"nctaid.{axis}"), relation=EQUAL)
    test = Tile(routed(ended), scalar=True)
    back = [Tile(routed(move(0)), scalar=True, data=counter)]
    if indexed:
        length = Register("uniform", f"length.{axis}")
        expression = Expression("mad", lowered.special(f"-nctaid.{axis}"), size, size)
        back += [Tile(routed(expression), scalar=True, data=length), _moved(axis, lowered, length)]
    back += [Tile(routed(move(room.start)), scalar=True, data=room.left) for room in rooms]
    _chain(back, following)
    _chain([count, test], again)
    test.taken = back[0]
    return [count, test, *forth, *back]


def _moved(axis: str, lowered: Lowered, distance: Register) -> Tile:
    """Every thread's index moved by a distance of the thread block's."""
    index = lowered.special(f"index.{axis}")
    return Tile(routed(total(index, distance)), data=index)


def _chain(tiles: list[Tile], last: Tile) -> None:
    """Let each tile be followed by the next, and the last of them by `last`."""
    for tile, following in pairwise([*tiles, last]):
        tile.next = following
