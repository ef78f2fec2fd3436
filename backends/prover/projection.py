"""A projection of the normalised stream: what its rows can be, and that their sums do not depend on order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.cone import Cone
from qgpu.backends.prover.facts import Literals, Term
from qgpu.backends.prover.literals import highest, necessary
from qgpu.backends.prover.stream import Stream, low_bit

INTEGERS = 2.0**24
"""Integers up to this are exact in float32."""

Fail = Callable[[str, int | None, str], None]
"""Report what is not proved: tensor, row, reason."""


@dataclass
class Rows:
    """Rows x = base + step * v, v = sum of weights[row, c] * n[c] over the stream's integers n.

    Attributes:
        base, step: float64 [rows]; step is a power of two, 1 where the row is constant.
        weights: float64 [rows, hidden], integers.
        low, high: int64 [rows], bounds of v by intervals.
        partial: float64 [rows], the largest partial sum in units of the row's grid.
    """

    stream: Stream
    base: np.ndarray
    step: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray
    partial: np.ndarray

    @property
    def least(self) -> np.ndarray:
        """Lower bounds of x."""
        return self.base + self.step * self.low

    @property
    def most(self) -> np.ndarray:
        """Upper bounds of x."""
        return self.base + self.step * self.high

    def form(self, row: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The variables that a row reads, and their weights."""
        places = np.flatnonzero(self.weights[row])
        return tuple(self.stream.at[places].tolist()), tuple(
            self.weights[row, places].astype(np.int64).tolist()
        )

    def term(self, row: int, table: np.ndarray) -> Term:
        """A function of a row's v, given from its lowest value on."""
        return Term(*self.form(row), int(self.low[row]), table)

    def values(self, row: int) -> np.ndarray:
        """All that a row's x may be, by v."""
        return self.base[row] + self.step[row] * np.arange(self.low[row], self.high[row] + 1)

    def literals(self, row: int, least: float) -> Literals:
        """What is necessary for x to be at least a number."""
        first = np.ceil((least - self.base[row]) / self.step[row])
        return necessary(self.stream.facts, *self.form(row), float(first), float("inf"))

    def most_where(self, row: int, literals: Literals) -> float:
        """An upper bound of x where literals hold."""
        return float(self.base[row] + self.step[row] * highest(self.stream.facts, *self.form(row), literals))

    def refined(self, row: int, sign: int = 1) -> float:
        """A bound of x from above (from below with sign -1), by cases."""
        terms = [
            Term((v,), (1,), 0, w * np.arange(self.stream.facts.count[v] + 1, dtype=np.float64))
            for v, w in zip(*self.form(row), strict=True)
        ]
        return float(self.base[row] + sign * self.step[row] * Cone(terms, self.stream.facts).maximum(sign))


def largest_partial(weight: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The largest size of a partial sum of weight @ x, in any order: that of all terms of one sign."""
    up, down = np.maximum(weight, 0), np.maximum(-weight, 0)
    top, bottom = np.maximum(high, 0), np.maximum(-low, 0)
    return np.maximum(up @ top + down @ bottom, up @ bottom + down @ top)


def project(stream: Stream, weight: np.ndarray, name: str, fail: Fail) -> Rows:
    """The rows of a projection [rows, hidden] of a stream that the norm has scaled."""
    for row, channel in np.argwhere((weight != 0) & ~stream.held):
        fail(name, int(row), f"reads channel {channel}, which holds nothing")
    base = weight @ stream.low
    scaled = weight * np.where(stream.count > 0, stream.unit, 0.0)
    step = low_bit(scaled).min(axis=1)
    step = np.where(np.isinf(step), 1.0, step)
    integers = scaled / step[:, None]
    count = stream.count.astype(np.float64)
    low = np.minimum(integers, 0) @ count
    high = np.maximum(integers, 0) @ count
    grid = stream.grid
    with np.errstate(invalid="ignore"):
        terms = np.where(weight != 0, low_bit(weight) * np.where(np.isinf(grid), 1e300, grid), np.inf)
    unit = terms.min(axis=1)
    partial = largest_partial(weight, stream.low, stream.high) / unit
    for row in np.flatnonzero(partial > INTEGERS):
        fail(name, int(row), f"partial sums reach {partial[row]:g} times {unit[row]:g}: more than 2^24")
    safe = np.where(partial <= INTEGERS, 1, 0)
    return Rows(
        stream, base, step, integers, (low * safe).astype(np.int64), (high * safe).astype(np.int64), partial
    )
