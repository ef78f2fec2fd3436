"""Exchanges between the lanes of a warp: shuffle, ballot, match and redux.

A row gets the values and masks of the lanes that run the instruction together, and gives their results. A
lane takes part for another where it is in that lane's mask; with the mask 0 all that run it do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from qgpu.ir.interpreter.values import SIGNED, UNSIGNED, Numbers, Pointers, Values


class Warps:
    """The threads that run an exchange together: which lanes of which warps, and who takes part for whom.

    Attributes:
        warp, lane: of each thread.
        others: [thread, lane]: the threads of its warp by lane, as indices; 0 where none runs it.
        takes_part: [thread, lane]: whether that lane takes part for the thread.
    """

    def __init__(self, threads: Numbers, masks: Numbers, warp_size: int) -> None:
        self.warp, self.lane = np.divmod(threads, warp_size)
        self.warp_size = warp_size
        self._bits = np.uint64(1) << np.arange(warp_size, dtype=np.uint64)
        warps = int(self.warp[-1]) + 1
        table = np.full((warps, warp_size), -1, np.intp)
        table[self.warp, self.lane] = np.arange(len(threads))
        others = table[self.warp]
        named = (masks[:, None] & self._bits != 0) | (masks == 0)[:, None]
        self.takes_part = (others >= 0) & named
        self.others = np.maximum(others, 0)

    def mask_of(self, chosen: Numbers) -> Numbers:
        """The i32 of the lanes that are chosen, [thread, lane]."""
        return (chosen * self._bits).sum(axis=1, dtype=np.uint64).astype(np.uint32)


def _shuffle(warps: Warps, attrs: Mapping[str, Any], operands: Sequence[Values]) -> Values:
    values, sources = operands
    assert not isinstance(sources, Pointers)
    own = np.arange(len(sources))
    inside = sources < warps.warp_size
    lane = np.where(inside, sources, 0).astype(np.intp)
    given = inside & warps.takes_part[own, lane]
    return values[np.where(given, warps.others[own, lane], own)]


def _ballot(warps: Warps, attrs: Mapping[str, Any], operands: Sequence[Values]) -> Values:
    (values,) = operands
    assert not isinstance(values, Pointers)
    return warps.mask_of(warps.takes_part & values[warps.others])


def _match(warps: Warps, attrs: Mapping[str, Any], operands: Sequence[Values]) -> Values:
    (values,) = operands
    assert not isinstance(values, Pointers)
    return warps.mask_of(warps.takes_part & (values[warps.others] == values[:, None]))


def _redux(warps: Warps, attrs: Mapping[str, Any], operands: Sequence[Values]) -> Values:
    (values,) = operands
    assert not isinstance(values, Pointers)
    function, dtype, neutral = REDUCTIONS[attrs["kind"]]
    table = np.where(warps.takes_part, values.view(dtype)[warps.others], dtype.type(neutral))
    return function.reduce(table, axis=1, dtype=dtype).view(UNSIGNED[32])


REDUCTIONS: dict[str, tuple[np.ufunc, np.dtype[Any], int]] = {
    "add": (np.add, UNSIGNED[32], 0),
    "min_s": (np.minimum, SIGNED[32], 2**31 - 1),
    "max_s": (np.maximum, SIGNED[32], -(2**31)),
    "min_u": (np.minimum, UNSIGNED[32], 2**32 - 1),
    "max_u": (np.maximum, UNSIGNED[32], 0),
    "and": (np.bitwise_and, UNSIGNED[32], 2**32 - 1),
    "or": (np.bitwise_or, UNSIGNED[32], 0),
    "xor": (np.bitwise_xor, UNSIGNED[32], 0),
}
"""By redux's kind: the function, the type of its numbers, and the number that changes no result."""

EXCHANGES: dict[str, Callable[[Warps, Mapping[str, Any], Sequence[Values]], Values]] = {
    "shuffle": _shuffle,
    "ballot": _ballot,
    "match": _match,
    "redux": _redux,
}
"""One row for each exchange; the operands come without the mask."""
