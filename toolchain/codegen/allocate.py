"""Register allocation: numbers for virtual registers, by colouring the interference graph.

Where registers are too few, some go elsewhere, and what is left is coloured anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qgpu.backends.machine.description import MachineDescription
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.interference import FIRST, Interference, coloured
from qgpu.toolchain.codegen.limits import Limits
from qgpu.toolchain.codegen.liveness import Live, Liveness, read
from qgpu.toolchain.codegen.nodes import Node, move
from qgpu.toolchain.codegen.refuse import first_place, refuse
from qgpu.toolchain.codegen.registers import Kind, Register
from qgpu.toolchain.codegen.relief import Relief
from qgpu.toolchain.codegen.splicing import splice, weights
from qgpu.toolchain.codegen.tiles import Tile, routed

_KINDS: tuple[Kind, ...] = ("predicate", "uniform", "thread")
"""The kinds in the order in which they are relieved: a condition that is no predicate needs a word."""

_RESERVES: dict[Kind, int] = {"predicate": 3, "uniform": 2, "thread": 2}
"""Registers for what is on the way to or from memory, or stands for a guard, of each kind."""


@dataclass(eq=False)
class Allocation:
    """The numbers of registers, and how many numbers of each kind are in use, with those set aside."""

    numbers: dict[Register, int] = field(default_factory=dict)
    counts: dict[Kind, int] = field(default_factory=dict)

    def place(self, register: Register) -> tuple[Kind, int]:
        """What registers that share a number have in common."""
        return register.kind, self.numbers[register]


def allocate(tiles: list[Tile], lowered: Lowered, limits: Limits) -> Allocation:
    """Number the registers of a program, and take out copies that have become copies onto themselves.

    Conditions become words, and words go to memory, where registers are too few.

    Raises:
        DiagnosticError: they are too few for what cannot go anywhere else.
    """
    temporaries: set[Register] = set()
    reserves = dict(_RESERVES)
    remove_dead_writes(tiles)
    splice(tiles, _with_one_destination)
    while True:
        liveness = remove_dead_writes(tiles)
        graph = Interference(tiles, liveness)
        for joined in (_accumulator, _copied):
            for tile in tiles:
                source = joined(tile)
                if source is not None and tile.data is not None:
                    graph.merge(tile.data, source)
        allocation = _numbered(graph)
        kind = _scarce(allocation, limits)
        if kind is None:
            _put_accumulators_first(tiles, allocation)
            remove_tiles(tiles, _idle_copies(tiles, allocation))
            return allocation
        room = limits.counts[kind] - FIRST[kind] - graph.pinned(kind) - reserves[kind]
        relief = Relief(kind, tiles, liveness.after, graph, temporaries)
        if not relief.run(tiles, room, lowered):
            raise _too_many(kind, lowered, allocation.counts[kind], limits)
        temporaries |= relief.temporaries
        reserves[kind] += 1


def _accumulator(tile: Tile) -> Register | None:
    """The register that a tile reads through the port to the one that it writes."""
    return tile.routing.accumulator


def _copied(tile: Tile) -> Register | None:
    return tile.source


def _with_one_destination(tile: Tile) -> list[Tile]:
    """A tile that writes no register beside a predicate: another tests the register."""
    if tile.predicate is None or tile.data is None:
        return [tile]
    test = Tile(routed(move(tile.data)), guard=tile.guard, predicate=tile.predicate, loc=tile.loc)
    test.taken, tile.taken, tile.predicate = tile.taken, None, None
    return [tile, test]


def _put_accumulators_first(tiles: Sequence[Tile], allocation: Allocation) -> None:
    """Renumber thread registers: those read through the accumulator port come first, the busiest before."""
    uses = Counter[int]()
    for tile, weight in weights(tiles).items():
        if tile.routing.accumulator:
            uses[allocation.numbers[tile.routing.accumulator]] += weight
    order = sorted(range(allocation.counts["thread"]), key=lambda number: -uses[number])
    renumbered = {number: position for position, number in enumerate(order)}
    for register, number in allocation.numbers.items():
        if register.kind == "thread":
            allocation.numbers[register] = renumbered[number]


def misfits(tiles: Iterable[Tile], allocation: Allocation, machine: MachineDescription) -> set[Node]:
    """The roots of tiles whose accumulator lies in rows that the accumulator port does not reach, or is not
    the register that they write.
    """
    stride = machine.warp_stride(max(1, allocation.counts["thread"]))
    reached = machine.accumulator_rows // stride
    numbers, found = allocation.numbers, set[Node]()
    for tile in tiles:
        read = tile.routing.accumulator
        if read is None or tile.root is None:
            continue
        if numbers[read] >= reached or (tile.data is not None and numbers[tile.data] != numbers[read]):
            found.add(tile.root)
    return found


def _scarce(allocation: Allocation, limits: Limits) -> Kind | None:
    """The first kind of which there are too few."""
    for kind in _KINDS:
        if allocation.counts[kind] > limits.counts[kind]:
            return kind
    return None


def _numbered(graph: Interference) -> Allocation:
    colours = coloured(graph)
    allocation = Allocation({r: colours[graph.representative(r)] for r in graph.registers()})
    for kind in _KINDS:
        used = [number + 1 for register, number in allocation.numbers.items() if register.kind == kind]
        allocation.counts[kind] = max(used, default=FIRST[kind])
    return allocation


def _too_many(kind: Kind, lowered: Lowered, needed: int, limits: Limits) -> Exception:
    names = {"thread": "registers a thread", "uniform": "uniform registers", "predicate": "predicates"}
    advice = {
        "thread": "a larger -maxrregcount, a smaller bound of the block's threads, or another --machine",
        "uniform": "arguments and variables take one each: another --machine has more",
        "predicate": "another --machine has more",
    }
    name = lowered.function.name
    reason = limits.reason if kind == "thread" else limits.reason.partition("for ")[0] or limits.reason
    return refuse(
        f"kernel '{name}' needs {needed} {names[kind]}; there are {limits.counts[kind]} {reason}",
        first_place(lowered.function),
        advice[kind],
    )


def _idle_copies(tiles: Iterable[Tile], allocation: Allocation) -> set[Tile]:
    numbers = allocation.numbers
    return {
        tile
        for tile in tiles
        if tile.source is not None and tile.data is not None and numbers[tile.data] == numbers[tile.source]
    }


def remove_dead_writes(tiles: list[Tile]) -> Liveness:
    """Take away destinations that nothing reads, and tiles that then do nothing; returns what is live."""
    liveness = Liveness(tiles)
    while True:
        forks, parted = _forks(tiles), any(map(liveness.parts, tiles))
        changed = {register for tile in tiles for register in _drop_dead(tile, liveness.after[tile])}
        idle = {tile for tile in tiles if does_nothing(tile)}
        if not idle:
            return liveness
        remove_tiles(tiles, idle)
        if not parted and forks == _forks(tiles):
            liveness.update(tiles, changed.union(*map(read, idle)))
        else:
            liveness = Liveness(tiles)


def _forks(tiles: Iterable[Tile]) -> dict[Tile, Register | None]:
    """The tiles that choose between two ways, and the predicates that they write."""
    return {tile: tile.predicate for tile in tiles if tile.taken is not None and tile.taken is not tile.next}


def _drop_dead(tile: Tile, live: Live) -> Iterator[Register]:
    """Take away the destinations of a tile that are not live after it; returns them."""
    if tile.data is not None and tile.data not in live and not tile.data.pinned:
        yield tile.data
        tile.data = None
    if tile.predicate is not None and tile.predicate not in live and not tile.predicate.pinned:
        yield tile.predicate
        tile.predicate = None


def does_nothing(tile: Tile) -> bool:
    """Whether a tile has no effect, nor any result."""
    effect = tile.data or tile.predicate or tile.touches_memory or tile.taken or tile.next is tile
    return not effect and tile.trap is None


def remove_tiles(tiles: list[Tile], removed: set[Tile]) -> None:
    """Take tiles out of a program; what led to them leads to what follows them."""
    if not removed:
        return
    for tile in tiles:
        tile.next = _past(tile.next, removed)
        tile.taken = _past(tile.taken, removed)
        tile.idle = _past(tile.idle, removed)
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
