"""Bounds: conditions on the index of a thread, by one token instead of one a thread.

Two kinds of conditions are told for all threads at once; of a kernel's, the busiest is:

- i < n, where i is the thread's index along x and n is the same in all threads. In a thread block of one
  dimension the threads that fulfil it are the first n - base, base being the index of the first thread. One
  scalar block writes that to the bound of predicate 1; in other thread blocks a block over all lanes
  compares.
- i < n along any axis, or two of these in a row. The grid loop counts how much room is left along each axis
  beyond the thread block's end. Where none of it is negative, no thread is outside, and one scalar block
  finds that out. Else blocks over all lanes compare. Their predicate says who is outside: it is 0 at first,
  so that nothing has to be written while no thread block has threads that are, and cleared before the next
  one that has none.

The host gives n clamped to what an index may be, so that differences are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from qgpu.toolchain.codegen.arithmetic import logic
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import (
    EQUAL,
    GREATER,
    LESS,
    LUT_X,
    LUT_Y,
    LUT_Z,
    Arg,
    Expression,
    Operand,
    move,
    signed,
    word,
)
from qgpu.toolchain.codegen.registers import GuardLiteral, Register
from qgpu.toolchain.codegen.routing import mirrored
from qgpu.toolchain.codegen.splicing import sources_of, weights
from qgpu.toolchain.codegen.tiles import Tile, routed

_MOST = (1 << 31) - 1
"""No thread's index is as large: see LAUNCH in `ir/core/limits.py`."""

_SIGN = 1 << 31

_INCLUSIVE = {LESS: 0, LESS | EQUAL: 1}
"""What is added to a limit, by the relation of the index to it."""

_AXES = 2
"""Axes that one block compares at most."""


@dataclass(frozen=True)
class Room:
    """What is left along an axis beyond the end of a thread block.

    Attributes:
        axis: of the grid.
        left: the register that holds it.
        start: the register that holds what it is for the first thread block.
    """

    axis: str
    left: Register
    start: Register


@dataclass(frozen=True)
class Rooms:
    """What the grid loop counts: rooms, and in a register whether one of them is negative (not 0 if so)."""

    rooms: tuple[Room, ...] = ()
    outside: Register | None = None


NO_ROOMS = Rooms()


@dataclass(frozen=True)
class _Comparison:
    """The index along an axis, or in the thread block, is less than a number plus `more`."""

    index: str
    number: Operand
    signed: bool
    more: int


@dataclass
class _Steps:
    """The tiles that compute a condition, each in the lanes that are left, and what they compare."""

    tiles: list[Tile]
    comparisons: list[_Comparison] = field(default_factory=list)


def choose_bound(tiles: list[Tile], lowered: Lowered) -> Rooms:
    """Let the busiest condition that can take one token; returns what the grid loop has to count for it.

    No other condition shares its predicate: in thread blocks that have a bound its stored bits stay 0.
    """
    read = {register for tile in tiles for register in tile.routing.registers}
    frequency = weights(tiles)
    sources = sources_of(tiles)
    found = [steps for tile in tiles for steps in _conditions(tile, tiles, read, sources)]
    for steps in sorted(found, key=lambda steps: -frequency[steps.tiles[0]]):
        first = steps.tiles[0]
        count = _count(steps, lowered)
        if count is not None:
            first.flat = _bound(first, count)
            return NO_ROOMS
        rooms = _rooms(steps, lowered)
        if rooms is not None:
            _compare_at_once(steps, tiles, rooms)
            return rooms
    return NO_ROOMS


def _conditions(
    first: Tile, tiles: Sequence[Tile], read: set[Register], sources: Mapping[Tile, list[Tile]]
) -> Iterator[_Steps]:
    """The steps that begin with a tile over all lanes, if they alone write their predicate."""
    if first.predicate is None or first.guard or first.everyone or first.scalar:
        return
    steps, tile = _Steps([]), first
    own = (GuardLiteral(first.predicate, True),)
    while (
        tile is not None and tile.predicate is first.predicate and tile.guard == (own if steps.tiles else ())
    ):
        comparison = _comparison(tile.routing.expression)
        if comparison is None or tile.data in read or tile.touches_memory:
            return
        steps.tiles.append(tile)
        steps.comparisons.append(comparison)
        if tile.taken is not None or tile.next is None:
            break
        tile = tile.next
    writers = [tile for tile in tiles if tile.predicate is first.predicate]
    if writers == steps.tiles and all(sources[tile] == [before] for before, tile in pairwise(steps.tiles)):
        yield steps


def _comparison(expression: Expression) -> _Comparison | None:
    x, y, relation = expression.x, expression.y, expression.relation
    if expression.op != "cmp":
        return None
    if _index(y):
        x, y, relation = y, x, mirrored(relation)
    if not _index(x) or relation not in _INCLUSIVE:
        return None
    return _Comparison(_index(x), y, expression.signed, _INCLUSIVE[relation])


def _index(operand: Operand) -> str:
    """The name of the special register that counts threads which an operand is, or nothing."""
    name = operand.preload if isinstance(operand, Register) else ""
    return name if name.startswith("index.") or name == "tid.x" else ""


# Thread blocks of one dimension


def _count(steps: _Steps, lowered: Lowered) -> Expression | None:
    """How many threads of a thread block of one dimension fulfil a condition, if they are the first ones."""
    if len(steps.comparisons) > 1 or steps.comparisons[0].index not in ("index.x", "tid.x"):
        return None
    (comparison,) = steps.comparisons
    number, inside = comparison.number, comparison.index == "tid.x"
    if inside and comparison.signed and not comparison.more and isinstance(number, Register):
        return move(number) if number.kind == "uniform" else None
    limit = _limit(comparison, lowered)
    if limit is None or inside:
        return limit if limit is None else move(limit)
    return Expression("mad", lowered.special("ctaid.x"), lowered.special("-ntid.x"), limit)


def _limit(comparison: _Comparison, lowered: Lowered) -> Arg | None:
    """The number of a comparison with what is added, within what an index can be."""
    if isinstance(comparison.number, int):
        number = signed(comparison.number) if comparison.signed else comparison.number
        return word(max(0, min(number + comparison.more, _MOST)))
    name = lowered.clamped(comparison.number, comparison.signed, comparison.more)
    return lowered.special(f"limit.{name}") if name else None


def _bound(tile: Tile, count: Expression) -> Tile:
    assert tile.predicate is not None
    tile.predicate.pinned = True
    return Tile(routed(count), scalar=True, predicate=tile.predicate, bound=True, loc=tile.loc)


# Thread blocks that lie inside as a whole


def _rooms(steps: _Steps, lowered: Lowered) -> Rooms | None:
    """The rooms that tell whether all threads fulfil a condition, if they can."""
    names = {(c.index, lowered.clamped(c.number, c.signed, c.more)) for c in steps.comparisons}
    if len(names) > _AXES or not all(index.startswith("index.") and name for index, name in names):
        return None
    details = sorted(f"{index[-1]}.{name}" for index, name in names)
    outside = lowered.special(f"outside.{','.join(details)}")
    return Rooms(tuple(_room(detail, lowered) for detail in details), outside)


def _room(detail: str, lowered: Lowered) -> Room:
    """The room beyond a thread block along an axis: a limit, less the index of the thread block's end."""
    start, key = lowered.special(f"room.{detail}"), f"left.{detail}"
    left = Register("uniform", key, pinned=True, preload=start.preload)
    return Room(detail[0], lowered.specials.setdefault(key, left), start)


def _compare_at_once(steps: _Steps, tiles: list[Tile], rooms: Rooms) -> None:
    """Put a scalar test before a condition's tiles, which run only where a thread is outside."""
    first, last = steps.tiles[0], steps.tiles[-1]
    predicate, loc, outside = first.predicate, first.loc, rooms.outside
    assert predicate is not None and outside is not None and last.next is not None
    predicate.pinned = True
    stale = Register("uniform", f"{predicate.name}.stale", pinned=True)
    compare = replace(first)
    _turn(tiles, [compare, *steps.tiles[1:]], predicate)
    last = steps.tiles[-1] if len(steps.tiles) > 1 else compare
    body, skipped = last.taken or last.next, last.next

    cleared = (GuardLiteral(predicate, True),)
    inside = (GuardLiteral(predicate, False),)
    either = Tile(routed(logic("or", outside, stale)), scalar=True, loc=loc, complete=True)
    which = Tile(routed(move(outside)), scalar=True, loc=loc)
    clear = Tile(routed(move(0)), guard=cleared, predicate=predicate, loc=loc)
    fresh = Tile(routed(move(0)), scalar=True, data=stale, loc=loc, complete=True)
    mark = Tile(routed(move(1)), scalar=True, data=stale, loc=loc)
    anyone = Tile(routed(move(1)), guard=inside, loc=loc, taken=body, next=skipped)

    vars(first).update(vars(either))
    first.next, first.taken = body, which
    which.next, which.taken = clear, mark
    clear.next, fresh.next, mark.next = fresh, body, compare
    branches, last.taken = last.taken is not None, None
    last.next = anyone if branches else body
    position = tiles.index(first)
    tiles[position : position + 1] = [first, which, clear, fresh, mark, compare]
    if branches:
        tiles.insert(tiles.index(last) + 1, anyone)


def _turn(tiles: Sequence[Tile], steps: Sequence[Tile], predicate: Register) -> None:
    """Let a predicate say the opposite, by the steps that compute it, where it is read."""
    for step in steps:
        expression = step.routing.expression
        turned = replace(expression, relation=expression.relation ^ (LESS | EQUAL | GREATER))
        step.routing = replace(step.routing, expression=turned)
    for tile in (*tiles, steps[0]):
        if any(literal.register is predicate for literal in tile.guard):
            tile.guard = tuple(~g if g.register is predicate else g for g in tile.guard)


def any_negative(rooms: Rooms) -> Expression:
    """An expression that is not 0 where one of the rooms, one or two, is negative."""
    x, y = (*(room.left for room in rooms.rooms), 0)[:2]
    return Expression("lop3", x, y, _SIGN, lut=(LUT_X | LUT_Y) & LUT_Z)
