"""Liveness of registers in code whose blocks act for some lanes only.

A register is live for a set of lanes, described by conditions as guards are. Walking backwards, a write
under a guard ends the liveness of the lanes that it writes, and leaves the others. So a slot that both sides
of a branch write is dead before the branch, and a value that only the lanes of one side read does not stand
in the way of what the other side writes.

Lanes are a conjunction of literals over predicates, kept as the bits of a number: two bits a predicate, for
its being true and false. Lanes with more bits are fewer lanes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qgpu.toolchain.codegen.registers import GuardLiteral, Register
from qgpu.toolchain.codegen.tiles import Tile

Lanes = int
Live = dict[Register, list[Lanes]]
"""For every live register the sets of lanes that will read it; their union counts."""

EVERY: Lanes = 0
_MANY = 12
"""A register live for more sets of lanes than this is taken to be live for all."""

_LONG = 1500
"""In a program of more tiles, which would take minutes, a quarter of these are many."""


@dataclass(eq=False, slots=True)
class _Step:
    """A tile as liveness sees it.

    Attributes:
        guard: the literals of its guard, each with its opposite.
        inside: the lanes that take part.
        outside: the literals that hold in none of them.
        changed: both literals of the predicate that it writes.
        after: what is live after it.
        ways: the steps that lead to it, each with lanes of which there are none on that way, if known.
    """

    tile: Tile
    guard: tuple[tuple[Lanes, Lanes], ...]
    inside: Lanes
    outside: Lanes
    changed: Lanes
    after: Live
    ways: list[tuple[_Step, Lanes | None]] = field(default_factory=list)


class Liveness:
    """The registers that are live after each tile; pinned ones, which always are, are left out.

    Every read is followed backwards until writes have covered its lanes, or to where that was done before.

    Attributes:
        after: by tile.
    """

    def __init__(self, tiles: Sequence[Tile]) -> None:
        guards = dict.fromkeys(literal.register for tile in tiles for literal in tile.guard)
        self._numbers = {register: number for number, register in enumerate(guards)}
        self.after: dict[Tile, Live] = {tile: {} for tile in tiles}
        self._many = _MANY if len(tiles) <= _LONG else _MANY // 4
        self._find(tiles, {register for tile in tiles for register in read(tile)})

    def update(self, tiles: Sequence[Tile], changed: set[Register]) -> None:
        """Find anew where some registers are live, after tiles and destinations were taken out.

        No way was, nor a predicate that `parts` lanes, so that lanes are as they were.

        Args:
            tiles: those that are left.
            changed: the registers that were read or written where they no longer are.
        """
        left = [(tile, self.after[tile]) for tile in tiles]
        self.after = {tile: {r: live[r] for r in live if r not in changed} for tile, live in left}
        self._find(tiles, changed)

    def parts(self, tile: Tile) -> bool:
        """Whether the predicate that a tile writes is dead after it, yet tells lanes apart."""
        step = self._steps[tile]
        if tile.predicate is None or tile.predicate.pinned or tile.predicate in step.after:
            return False
        return any(member & step.changed for lanes in step.after.values() for member in lanes)

    def _find(self, tiles: Sequence[Tile], registers: set[Register]) -> None:
        self._steps = {tile: self._step(tile) for tile in tiles}
        self._link()
        single = _written_once(tiles)
        for step in self._steps.values():
            for register, lanes in self._reads(step):
                if register in registers and not register.pinned:
                    _follow(register, step, lanes, register in single, self._many)

    def reached(self, tile: Tile) -> Iterator[Register]:
        """The registers that are live after a tile for lanes that a write of it reaches."""
        step = self._steps[tile]
        unreached = EVERY if tile.scalar else step.outside
        for register, lanes in step.after.items():
            if not unreached or any(not member & ~step.changed & unreached for member in lanes):
                yield register

    def _bit(self, literal: GuardLiteral) -> Lanes:
        return 1 << 2 * self._numbers[literal.register] + literal.polarity

    def _step(self, tile: Tile) -> _Step:
        guard = tuple((self._bit(literal), self._bit(~literal)) for literal in tile.guard)
        own = GuardLiteral(tile.predicate, True) if tile.predicate in self._numbers else None
        changed = self._bit(own) | self._bit(~own) if own else EVERY
        inside, outside = _all_of(bit for bit, _ in guard), _all_of(no for _, no in guard)
        return _Step(tile, guard, inside, outside, changed, self.after[tile])

    def _link(self) -> None:
        for step in self._steps.values():
            tile = step.tile
            if tile.next is not None:
                voters = self._voters(step) if tile.taken is not tile.next else None
                self._steps[tile.next].ways.append((step, voters))
            if tile.taken is not None:
                self._steps[tile.taken].ways.append((step, None))

    def _voters(self, step: _Step) -> Lanes | None:
        """The lanes that would have made a branch taken, by the predicates after it, if that can be said."""
        tile = step.tile
        if tile.taken is None or tile.scalar:
            return None
        constant = tile.routing.expression.moved
        if isinstance(constant, int) and constant:
            return step.inside if tile.predicate is None else None
        own = GuardLiteral(tile.predicate, True) if tile.predicate in self._numbers else None
        if own is None or self._bit(~own) & step.inside:
            return None
        return step.inside | self._bit(own)

    def _reads(self, step: _Step) -> Iterator[tuple[Register, Lanes]]:
        for register in step.tile.routing.registers:
            yield register, EVERY if register.kind == "uniform" else step.inside
        before = EVERY
        for literal in step.tile.guard:
            yield literal.register, before
            before |= self._bit(literal)


def _all_of(literals: Iterable[Lanes]) -> Lanes:
    lanes = EVERY
    for literal in literals:
        lanes |= literal
    return lanes


def _follow(register: Register, reader: _Step, lanes: Lanes, single: bool, many: int) -> None:
    pending = [(reader, lanes)]
    while pending:
        step, wanted = pending.pop()
        for previous, nobody in step.ways:
            if nobody is not None and nobody & wanted == nobody:
                continue
            known = previous.after.get(register)
            if known is None:
                previous.after[register] = [wanted]
            elif not _added(known, wanted, many):
                continue
            tile = previous.tile
            if register is not tile.data and register is not tile.predicate:
                pending += [(previous, passed) for passed in _before(wanted, previous)]
            elif not single and not tile.scalar:
                rest = (
                    rest for passed in _before(wanted, previous) for rest in _difference(passed, previous)
                )
                pending += [(previous, lanes) for lanes in rest]


def _added(known: list[Lanes], lanes: Lanes, many: int) -> bool:
    """Add lanes to a union; returns whether it has grown."""
    for member in known:
        if member & lanes == member:
            return False
    if len(known) >= many:
        known[:] = [EVERY]
    else:
        known[:] = [member for member in known if member & lanes != lanes] + [lanes]
    return True


def _written_once(tiles: Iterable[Tile]) -> set[Register]:
    """Registers with one writer: who reads them has run it, so that before it they are dead for all lanes."""
    count = Counter(register for tile in tiles for register in written(tile))
    return {register for register, writers in count.items() if writers == 1}


def written(tile: Tile) -> tuple[Register, ...]:
    """The registers that a tile writes."""
    return tuple(register for register in (tile.data, tile.predicate) if register is not None)


def read(tile: Tile) -> Iterator[Register]:
    """The registers that a tile reads, those of its guard as well."""
    yield from tile.routing.registers
    yield from (literal.register for literal in tile.guard)


def _before(lanes: Lanes, step: _Step) -> Sequence[Lanes]:
    """Lanes in terms of the predicates before a tile: those for which it wrote one, and the others.

    What is said of the predicate that it writes is dropped for the former.
    """
    if not lanes & step.changed:
        return (lanes,)
    rest = lanes & ~step.changed
    written_ = [] if rest & step.outside else [rest | step.inside]
    return [*written_, *_difference(lanes, step)]


def _difference(lanes: Lanes, step: _Step) -> Iterator[Lanes]:
    """Lanes without those of a tile: they fail its guard's first literal, or its second but not its first."""
    if lanes & step.outside:
        yield lanes
        return
    for literal, opposite in step.guard:
        if not lanes & literal:
            yield lanes | opposite
            lanes |= literal
