"""Register allocation: numbers for virtual registers, by colouring the interference graph.

Two registers of a kind interfere where one is written while the other is live for lanes that the write
reaches. Registers joined by a copy are given one number where they do not interfere, and the copy goes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qgpu.backends.machine.description import MachineDescription
from qgpu.toolchain.codegen.liveness import Live, forget, live_after, overlap_lanes, written
from qgpu.toolchain.codegen.refuse import refuse
from qgpu.toolchain.codegen.registers import Kind, Register
from qgpu.toolchain.codegen.tiles import Tile

_FIRST = {"thread": 0, "uniform": 1, "predicate": 1}
"""The first number of each kind: uniform register 0 is the host's, predicate 0 says who exists."""


@dataclass(eq=False)
class Allocation:
    """The numbers of registers, and how many numbers of each kind are in use, with those set aside."""

    numbers: dict[Register, int] = field(default_factory=dict)
    counts: dict[Kind, int] = field(default_factory=dict)


class Interference:
    """The interference graph, with registers merged as copies are taken away."""

    def __init__(self, tiles: Sequence[Tile], after: dict[Tile, Live]) -> None:
        self._merged: dict[Register, Register] = {}
        self.neighbours: dict[Register, set[Register]] = {}
        for tile in tiles:
            for register in (*written(tile), *tile.routing.registers, *(g.register for g in tile.guard)):
                self.neighbours.setdefault(register, set())
            self._add_writes(tile, after[tile])
        for register in list(self.neighbours):
            if register.partner:
                self.neighbours.setdefault(register.partner, set())
        pinned = [register for register in self.neighbours if register.pinned]
        for register in self.neighbours:
            for other in pinned:
                self._connect(register, other)

    def _add_writes(self, tile: Tile, after: Live) -> None:
        """A write stands in the way of what is live after it, for lanes that it reaches; not of its copy."""
        reached = () if tile.scalar else tile.guard
        for register, lanes in after.items():
            if register is tile.source:
                continue
            if any(overlap_lanes(forget(member, tile), reached) for member in lanes):
                for own in written(tile):
                    self._connect(own, register)

    def _connect(self, a: Register, b: Register) -> None:
        if a is not b and a.kind == b.kind:
            self.neighbours.setdefault(a, set()).add(b)
            self.neighbours.setdefault(b, set()).add(a)

    def representative(self, register: Register) -> Register:
        """The register that stands for all that a register was merged with."""
        while register in self._merged:
            register = self._merged[register]
        return register

    def merge(self, a: Register, b: Register) -> bool:
        """Give two registers one number if they do not interfere; returns whether they have one now."""
        a, b = self.representative(a), self.representative(b)
        if a is b:
            return True
        if b in self.neighbours[a] or a.pinned or b.pinned:
            return False
        for other in self.neighbours.pop(b):
            self.neighbours[other].discard(b)
            self._connect(a, other)
        self._merged[b] = a
        return True

    def registers(self) -> Iterator[Register]:
        """All registers, merged ones as well."""
        yield from self.neighbours
        yield from self._merged


def allocate(tiles: list[Tile], machine: MachineDescription, kernel: str) -> Allocation:
    """Number the registers of a program, and take out copies that have become copies onto themselves.

    Raises:
        DiagnosticError: the machine has too few registers of a kind.
    """
    graph = Interference(tiles, remove_dead_writes(tiles))
    for tile in tiles:
        if tile.source is not None and tile.data is not None:
            graph.merge(tile.data, tile.source)
    colours = _coloured(graph)
    allocation = Allocation({r: colours[graph.representative(r)] for r in graph.registers()})
    for kind, limit in _limits(machine).items():
        used = [number + 1 for register, number in allocation.numbers.items() if register.kind == kind]
        allocation.counts[kind] = max(used, default=_FIRST[kind])
        if allocation.counts[kind] > limit:
            raise _too_many(kind, kernel, allocation.counts[kind], limit, machine)
    remove_tiles(tiles, _idle_copies(tiles, allocation))
    return allocation


def _limits(machine: MachineDescription) -> dict[Kind, int]:
    return {
        "thread": machine.register_rows,
        "uniform": machine.uniform_registers,
        "predicate": machine.predicates,
    }


def _too_many(kind: Kind, kernel: str, needed: int, limit: int, machine: MachineDescription) -> Exception:
    names = {
        "thread": "registers a thread",
        "uniform": "uniform registers",
        "predicate": "predicate registers",
    }
    return refuse(
        f"kernel '{kernel}' needs {needed} {names[kind]}; machine '{machine.name}' has {limit}", None
    )


def _idle_copies(tiles: Iterable[Tile], allocation: Allocation) -> set[Tile]:
    numbers = allocation.numbers
    return {
        tile
        for tile in tiles
        if tile.source is not None and tile.data is not None and numbers[tile.data] == numbers[tile.source]
    }


def remove_dead_writes(tiles: list[Tile]) -> dict[Tile, Live]:
    """Take away destinations that nothing reads, and tiles that then do nothing; returns what is live."""
    while True:
        after = live_after(tiles)
        for tile in tiles:
            _drop_dead(tile, after[tile])
        idle = {tile for tile in tiles if _does_nothing(tile)}
        if not idle:
            return after
        remove_tiles(tiles, idle)


def _drop_dead(tile: Tile, live: Live) -> None:
    if tile.data is not None and tile.data not in live and not tile.data.pinned:
        tile.data = None
    if tile.predicate is not None and tile.predicate not in live:
        tile.predicate = None


def _does_nothing(tile: Tile) -> bool:
    effect = tile.data or tile.predicate or tile.stores or tile.access or tile.taken or tile.next is tile
    return not effect and tile.trap is None


def remove_tiles(tiles: list[Tile], removed: set[Tile]) -> None:
    """Take tiles out of a program; what led to them leads to what follows them."""
    if not removed:
        return
    for tile in tiles:
        tile.next = _past(tile.next, removed)
        tile.taken = _past(tile.taken, removed)
    if tiles[0] in removed:
        first = _past(tiles[0], removed)
        assert first is not None
        tiles.remove(first)
        tiles.insert(0, first)
    tiles[:] = [tile for tile in tiles if tile not in removed]


def _past(tile: Tile | None, removed: set[Tile]) -> Tile | None:
    while tile is not None and tile in removed:
        tile = tile.next
    return tile


def _coloured(graph: Interference) -> dict[Register, int]:
    """Colours by DSATUR (Brelaz 1979): next the register whose neighbours have the most colours.

    `seen` holds the colours of a register's neighbours as bits; the heap has an entry for each time that a
    register's grew, of which the latest counts.
    """
    order = {register: index for index, register in enumerate(graph.neighbours)}
    seen = dict.fromkeys(graph.neighbours, 0)
    colours: dict[Register, int] = {}

    def entry(register: Register) -> tuple[bool, int, int, int, Register]:
        if register.pinned:
            return False, 0, 0, order[register], register
        return True, -seen[register].bit_count(), -len(graph.neighbours[register]), order[register], register

    heap = [entry(register) for register in graph.neighbours]
    heapq.heapify(heap)
    while heap:
        register = heapq.heappop(heap)[-1]
        if register in colours:
            continue
        colour = _lowest_free(seen[register] >> _FIRST[register.kind]) + _FIRST[register.kind]
        colours[register] = colour
        for other in graph.neighbours[register]:
            if other not in colours and not seen[other] >> colour & 1:
                seen[other] |= 1 << colour
                heapq.heappush(heap, entry(other))
    return colours


def _lowest_free(taken: int) -> int:
    """The lowest bit that is not set."""
    return (~taken & taken + 1).bit_length() - 1
