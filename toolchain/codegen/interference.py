"""The interference graph of registers, and its colouring.

Two registers of a kind interfere where one is written while the other is live for lanes that the write
reaches. Registers joined by a copy are given one number where they do not interfere, and the copy goes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from qgpu.toolchain.codegen.liveness import Liveness, written
from qgpu.toolchain.codegen.registers import Kind, Register
from qgpu.toolchain.codegen.tiles import Tile

FIRST: dict[Kind, int] = {"thread": 0, "uniform": 1, "predicate": 1}
"""The first number of each kind: uniform register 0 is the host's, predicate 0 says who exists."""


class Interference:
    """The interference graph, with registers merged as copies are taken away."""

    def __init__(self, tiles: Sequence[Tile], liveness: Liveness) -> None:
        self._merged: dict[Register, Register] = {}
        self.neighbours: dict[Register, set[Register]] = {}
        for tile in tiles:
            other = tile.flat.routing.registers if tile.flat else ()
            guarding = (literal.register for literal in tile.guard)
            for register in (*written(tile), *tile.routing.registers, *guarding, *other):
                self.neighbours.setdefault(register, set())
            self._add_writes(tile, liveness)
        for register in list(self.neighbours):
            if register.partner:
                self.neighbours.setdefault(register.partner, set())
        pinned = [register for register in self.neighbours if register.pinned]
        for register in self.neighbours:
            for other in pinned:
                self._connect(register, other)

    def _add_writes(self, tile: Tile, liveness: Liveness) -> None:
        """A write stands in the way of what is live after it, for lanes that it reaches; not of its copy."""
        own = written(tile)
        for register in liveness.reached(tile) if own else ():
            for other in own:
                if register is not tile.source:
                    self._connect(other, register)

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

    def pinned(self, kind: Kind) -> int:
        """How many registers of a kind have a number of their own from the beginning to the end."""
        return sum(register.pinned and register.kind == kind for register in self.neighbours)

    def registers(self) -> Iterator[Register]:
        """All registers, merged ones as well."""
        yield from self.neighbours
        yield from self._merged


def coloured(graph: Interference) -> dict[Register, int]:
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
        colour = _lowest_free(seen[register] >> FIRST[register.kind]) + FIRST[register.kind]
        colours[register] = colour
        for other in graph.neighbours[register]:
            if other not in colours and not seen[other] >> colour & 1:
                seen[other] |= 1 << colour
                heapq.heappush(heap, entry(other))
    return colours


def _lowest_free(taken: int) -> int:
    """The lowest bit that is not set."""
    return (~taken & taken + 1).bit_length() - 1
