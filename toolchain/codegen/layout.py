"""Layout: the order of tiles in program memory, in which control falls through where it is likely to go on.

Going on to the block behind takes no token. So a tile is followed by its `next`; one that branches over
code that comes back to its `next`, or to code with a loop that the other way does not have, is followed by
that code. A scalar comparison that decides a branch is turned round where that lets the likely way be
`next`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qgpu.toolchain.codegen.nodes import EQUAL, Expression
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.splicing import weights
from qgpu.toolchain.codegen.tiles import Tile, routed

_ALL = 7
"""The relation that always holds."""


def laid_out(tiles: Sequence[Tile]) -> list[Tile]:
    """The tiles in the order of program memory; the first stays the first."""
    position = {tile: index for index, tile in enumerate(tiles)}
    busiest = _busiest(tiles, position)
    placed: dict[Tile, None] = {}
    for start in tiles:
        tile: Tile | None = start
        while tile is not None and tile not in placed:
            placed[tile] = None
            body = tile.taken
            if body is None or tile.next is None or tile.complete or {body, tile.next} & placed.keys():
                tile = tile.next
            elif busiest[body] > busiest[tile.next] or _leads_to(body, tile.next, position):
                tile = tile.next if _turn(tile) else body
            else:
                tile = tile.next
    return list(placed)


def _busiest(tiles: Sequence[Tile], position: Mapping[Tile, int]) -> dict[Tile, int]:
    """How often the busiest of the tiles is taken to run that ways forward lead to."""
    busiest = weights(tiles)
    for tile in reversed(tiles):
        forward = (busiest[other] for other in tile.successors if position[other] > position[tile])
        busiest[tile] = max(busiest[tile], *forward, 0)
    return busiest


def _leads_to(first: Tile, target: Tile, position: Mapping[Tile, int]) -> bool:
    """Whether a way forward leads from one tile to another."""
    seen, pending = {first}, [first]
    while pending:
        tile = pending.pop()
        if tile is target:
            return True
        new = [t for t in tile.successors if position[tile] < position[t] <= position[target]]
        pending += [following for following in new if following not in seen]
        seen.update(new)
    return False


def _turn(tile: Tile) -> bool:
    """Let a scalar tile that only tests branch where it did not, if it can."""
    expression = tile.routing.expression
    if not tile.scalar or tile.data or tile.touches_memory or tile.idle:
        return False
    if expression.op == "cmp":
        turned = replace(expression, relation=expression.relation ^ _ALL)
        tile.routing = replace(tile.routing, expression=turned)
    elif isinstance(expression.moved, Register):
        tile.routing = routed(Expression("cmp", expression.moved, 0, relation=EQUAL))
    else:
        return False
    tile.next, tile.taken = tile.taken, tile.next
    return True
