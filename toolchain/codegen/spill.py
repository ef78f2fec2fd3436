"""Spilling: registers kept in memory, stored where they are computed and loaded where they are read.

A thread register goes to the thread's frame in local memory, a uniform one to a word of a buffer of the
kernel's own. A block that has no access yet, and ports left, stores or loads by the way; else another does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import MEMORY, Access, Term, move
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.routing import Accumulator, route
from qgpu.toolchain.codegen.splicing import rename, splice, then
from qgpu.toolchain.codegen.tiles import Tile, routed

_WORD = 4


@dataclass(frozen=True)
class Home:
    """Where a spilled register is: a word of memory, or nowhere where it is a constant."""

    access: Access | None
    constant: int = 0


def homes(
    registers: Sequence[Register], neighbours: Mapping[Register, Iterable[Register]], lowered: Lowered
) -> dict[Register, Home]:
    """Find a home for each register; those that are never live at once share."""
    slots: dict[Register, int] = {}
    found: dict[Register, Home] = {}
    for register in registers:
        if register.preload.startswith("const:"):
            found[register] = Home(None, int(register.preload.removeprefix("const:")))
            continue
        taken = {slots[other] for other in neighbours[register] if other in slots}
        slots[register] = next(slot for slot in range(len(taken) + 1) if slot not in taken)
    threads = [register for register in slots if register.kind == "thread"]
    uniform = [register for register in slots if register.kind == "uniform"]
    begin, begin_uniform = lowered.local_bytes, lowered.spilled_bytes
    for register in threads:
        found[register] = Home(_in_frame(lowered, begin + _WORD * slots[register]))
    for register in uniform:
        found[register] = Home(_in_words(lowered, begin_uniform + _WORD * slots[register]))
    lowered.local_bytes += _WORD * _count(slots, threads)
    lowered.spilled_bytes += _WORD * _count(slots, uniform)
    return found


def _count(slots: Mapping[Register, int], registers: Sequence[Register]) -> int:
    return max((slots[register] + 1 for register in registers), default=0)


def _in_frame(lowered: Lowered, offset: int) -> Access:
    frame = (Term(lowered.special("frame"), _WORD),)
    return Access(lowered.special("local"), frame, offset, _WORD, space="local")


def _in_words(lowered: Lowered, offset: int) -> Access:
    return Access(lowered.spilled_words, (), offset, _WORD, space="local")


class Spiller:
    """Rewrites a program so that some registers have homes in memory.

    Attributes:
        temporaries: the registers that hold what is loaded or will be stored, for a block or two.
    """

    def __init__(self, homes: Mapping[Register, Home]) -> None:
        self._homes = homes
        self.temporaries: set[Register] = set()

    def run(self, tiles: list[Tile]) -> None:
        """Rewrite all tiles, in place."""
        splice(tiles, self._expanded)

    def _expanded(self, tile: Tile) -> list[Tile]:
        return [*self._loads(tile), *self._stored(tile)]

    def _loads(self, tile: Tile) -> list[Tile]:
        """The tiles that load what a tile reads, where it cannot do so by itself."""
        loads: list[Tile] = []
        read = [register for register in dict.fromkeys(tile.routing.registers) if register in self._homes]
        read.sort(key=lambda register: self._homes[register] != self._homes.get(tile.data))  # pyright: ignore
        for register in read:
            home = self._homes[register]
            if register is not tile.routing.accumulator and _take_in(tile, register, home):
                continue
            temporary = self._temporary(register)
            loads.append(_load(tile, temporary, home))
            rename(tile, register, temporary)
        return loads

    def _stored(self, tile: Tile) -> list[Tile]:
        """The tile, and one that stores its result where it cannot do so by itself."""
        home = self._homes.get(tile.data) if tile.data else None
        if home is None or tile.data is None or home.access is None:
            return [tile]
        if tile.access == home.access and not (tile.stores or tile.stores_second or tile.predicate):
            tile.data, tile.stores = None, True
            return [tile]
        free = _is_free(tile) and tile.predicate is None
        routing = route(tile.routing.expression, home.access) if free else None
        if routing is not None:
            tile.routing, tile.access, tile.stores, tile.data = routing, home.access, True, None
            return [tile]
        accumulator = tile.routing.accumulator
        temporary = accumulator if accumulator in self.temporaries else self._temporary(tile.data)
        assert temporary is not None
        tile.data = temporary
        routing = route(move(temporary), home.access)
        assert routing is not None
        guard = () if tile.scalar else tile.guard
        store = Tile(routing, home.access, guard, tile.scalar, stores=True, loc=tile.loc)
        return then(tile, temporary, store)

    def _temporary(self, register: Register) -> Register:
        temporary = Register(register.kind, f"{register.name}.spilled")
        self.temporaries.add(temporary)
        return temporary


def _is_free(tile: Tile) -> bool:
    """Whether a tile may take in an access."""
    return not tile.touches_memory and tile.trap is None


def _take_in(tile: Tile, register: Register, home: Home) -> bool:
    """Let a tile load a register that it reads by itself, if it can."""
    if home.access is None or not _is_free(tile):
        return False
    expression = tile.routing.expression
    operands = (MEMORY if operand is register else operand for operand in expression.operands)
    accumulator = tile.routing.accumulator
    port = Accumulator(frozenset({accumulator})) if accumulator else None
    routing = route(expression.with_operands(*operands), home.access, accumulator=port)
    if routing is None:
        return False
    tile.routing, tile.access = routing, home.access
    return True


def _load(tile: Tile, target: Register, home: Home) -> Tile:
    """The tile that loads a register for a tile that reads it, in its lanes."""
    scalar = target.kind == "uniform"
    guard = () if scalar else tile.guard
    if home.access is None:
        return Tile(routed(move(home.constant & 0xFFFFFFFF)), scalar=True, data=target, loc=tile.loc)
    routing = route(move(MEMORY), home.access)
    assert routing is not None
    return Tile(routing, home.access, guard, scalar, data=target, loc=tile.loc)
