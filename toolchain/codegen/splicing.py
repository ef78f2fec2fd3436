"""Splicing: tiles put before and after others in a program that is linked already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from qgpu.toolchain.codegen.nodes import Access, Arg, move
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.tiles import Tile, routed

_LOOP_WEIGHT = 8
"""How often the body of a loop is taken to run."""


def splice(tiles: list[Tile], expand: Callable[[Tile], list[Tile]]) -> None:
    """Replace every tile by a sequence, in place; only the last of each may branch."""
    first: dict[Tile, Tile] = {}
    last: list[Tile] = []
    spliced: list[Tile] = []
    for tile in tiles:
        following = tile.next
        sequence = expand(tile)
        first[tile] = sequence[0]
        for one, other in pairwise(sequence):
            one.next = other
        sequence[-1].next = following
        last.append(sequence[-1])
        spliced += sequence
    for tile in last:
        tile.next = tile.next and first[tile.next]
        tile.taken = tile.taken and first[tile.taken]
    tiles[:] = spliced


def then(tile: Tile, result: Register, step: Tile) -> list[Tile]:
    """A tile, and a step that reads its result under the same guard.

    What the tile does to its own guard, and its branch, come after the step.
    """
    own = tile.predicate is not None and any(literal.register is tile.predicate for literal in tile.guard)
    if tile.taken is None and not own:
        return [tile, step]
    test = Tile(routed(move(result)), guard=tile.guard, scalar=tile.scalar, loc=tile.loc)
    test.taken, tile.taken = tile.taken, None
    if own:
        test.predicate, tile.predicate = tile.predicate, None
    return [tile, step, test]


def rename(tile: Tile, old: Register, new: Register) -> None:
    """Let a tile read one register instead of another."""

    def renamed(value: Arg) -> Arg:
        return new if value is old else value

    routing = tile.routing
    operands = (new if operand is old else operand for operand in routing.expression.operands)
    ports = {port: new if value is old else value for port, value in routing.ports.items()}
    tile.routing = replace(routing, expression=routing.expression.with_operands(*operands), ports=ports)

    def of(access: Access | None) -> Access | None:
        if access is None:
            return None
        terms = tuple(replace(term, value=renamed(term.value)) for term in access.terms)
        return replace(access, descriptor=renamed(access.descriptor), terms=terms)

    tile.access, tile.second = of(tile.access), of(tile.second)


def weights(tiles: Sequence[Tile]) -> dict[Tile, int]:
    """How often each tile is taken to run: more in loops, which are what a jump back spans."""
    position = {tile: index for index, tile in enumerate(tiles)}
    begins, ends = Counter[int](), Counter[int]()
    for index, tile in enumerate(tiles):
        for target in tile.successors:
            if position.get(target, len(tiles)) <= index:
                begins[position[target]] += 1
                ends[index] += 1
    found: dict[Tile, int] = {}
    depth = 0
    for index, tile in enumerate(tiles):
        depth += begins[index]
        found[tile] = _LOOP_WEIGHT ** min(depth, 4)
        depth -= ends[index]
    return found


Place = Callable[[Register], Hashable]
"""What registers have in common that are one: their kind and number."""


def signature(tile: Tile, place: Place) -> Hashable:
    """What a tile does, but for where control goes then; equal for tiles that do the same."""

    def placed(value: object) -> object:
        return place(value) if isinstance(value, Register) else value

    def where(access: Access | None) -> Hashable:
        if access is None:
            return None
        terms = tuple((placed(term.value), term.scale, term.unsigned) for term in access.terms)
        return placed(access.descriptor), terms, access.displacement, access.width, access.sign

    routing, expression = tile.routing, tile.routing.expression
    operation = expression.op, expression.lut, expression.relation, expression.signed
    ports = tuple(sorted((port, placed(value)) for port, value in routing.ports.items()))
    guard = frozenset((place(literal.register), literal.polarity) for literal in tile.guard)
    results = placed(tile.data), placed(tile.predicate), tile.stores, tile.stores_second
    kind = tile.scalar, tile.bound, tile.everyone, tile.trap, tile.message
    flags = frozenset(routing.flags)
    return operation, ports, flags, where(tile.access), where(tile.second), guard, results, kind


def sources_of(tiles: Iterable[Tile]) -> dict[Tile, list[Tile]]:
    """The tiles that lead to each tile; one is there twice that leads to it in two ways."""
    sources: dict[Tile, list[Tile]] = {tile: [] for tile in tiles}
    for tile in list(sources):
        for following in tile.successors:
            sources.setdefault(following, []).append(tile)
    return sources


def leaders(tiles: Iterable[Tile]) -> set[Tile]:
    """The tiles that control may reach otherwise than from the one before in the list."""
    found: set[Tile] = set()
    previous: Tile | None = None
    sources = Counter[Tile]()
    for tile in tiles:
        sources.update(tile.successors)
        if previous is None or previous.next is not tile:
            found.add(tile)
        previous = tile
    return found | {tile for tile, count in sources.items() if count > 1}
