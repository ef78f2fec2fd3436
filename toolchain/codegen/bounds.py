"""Bounds: a condition that all threads up to some number fulfil, as one number instead of a bit a thread.

In a thread block of one dimension the threads with i < n, where i is the thread's index and n is the thread
block's, are the first n - base, base being the index of the first thread. One scalar block writes that to the
bound of predicate 1; in other thread blocks a block over all lanes compares. The host gives n clamped to what an
index may be, so that the difference is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.ir import IntType
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import EQUAL, LESS, Arg, Expression, move, signed, word
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.routing import mirrored
from qgpu.toolchain.codegen.splicing import weights
from qgpu.toolchain.codegen.tiles import Tile, routed

_MOST = (1 << 31) - 1
"""No thread's index is as large: see LAUNCH in `ir/core/limits.py`."""

_INCLUSIVE = {LESS: 0, LESS | EQUAL: 1}
"""What is added to a limit, by the relation of the index to it."""


def choose_bound(tiles: Sequence[Tile], lowered: Lowered) -> None:
    """Give the busiest condition that is a bound predicate 1, and its tile another for flat thread blocks.

    No other tile writes that predicate, and no other condition shares it: in a flat thread block its stored bits
    stay 0.
    """
    writers: dict[Register, list[Tile]] = {}
    for tile in tiles:
        if tile.predicate is not None:
            writers.setdefault(tile.predicate, []).append(tile)
    busy, chosen = 0, None
    for tile, weight in weights(tiles).items():
        alone = tile.predicate is not None and writers[tile.predicate] == [tile] and not tile.guard
        if weight > busy and alone and not (tile.data or tile.touches_memory or tile.everyone):
            bound = _bound(tile.routing.expression, lowered)
            if bound is not None:
                busy, chosen = weight, (tile, bound)
    if chosen is not None:
        tile, bound = chosen
        assert tile.predicate is not None
        tile.predicate.pinned = True
        tile.flat = Tile(routed(bound), scalar=True, predicate=tile.predicate, bound=True, loc=tile.loc)


def _bound(comparison: Expression, lowered: Lowered) -> Expression | None:
    """How many threads fulfil a comparison, counted in scalar registers, if the first ones do."""
    if comparison.op != "cmp":
        return None
    x, y, relation = comparison.x, comparison.y, comparison.relation
    if _index(y):
        x, y, relation = y, x, mirrored(relation)
    index, more = _index(x), _INCLUSIVE.get(relation)
    if not index or more is None:
        return None
    if index == "tid.x" and comparison.signed and more == 0 and isinstance(y, Register):
        return move(y) if y.kind == "uniform" else None
    limit = _limit(y, comparison.signed, more, lowered)
    if limit is None or index == "tid.x":
        return limit if limit is None else move(limit)
    return Expression("mad", lowered.special("ctaid.x"), lowered.special("-ntid.x"), limit)


def _index(operand: object) -> str:
    """The name of the special register that counts threads which an operand is, or nothing."""
    name = operand.preload if isinstance(operand, Register) else ""
    return name if name in ("index.x", "tid.x") else ""


def _limit(operand: object, is_signed: bool, more: int, lowered: Lowered) -> Arg | None:
    """A number, or a parameter's register, plus `more`, within what an index can be."""
    if isinstance(operand, int):
        number = signed(operand) if is_signed else operand
        return word(max(0, min(number + more, _MOST)))
    for index, register in lowered.parameters.items():
        type_ = lowered.function.args[index].type
        if register is operand and isinstance(type_, IntType) and type_.width <= 32:
            return lowered.special(f"limit.{'su'[not is_signed]}{more}:{index}")
    return None
