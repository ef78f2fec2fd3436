"""The abstract residual stream: what each channel can hold, and which exclude or imply each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def low_bit(values: np.ndarray) -> np.ndarray:
    """The largest power of two of which each number is a multiple; infinity for 0."""
    numbers = np.asarray(values, dtype=np.float64)
    found = np.full(numbers.shape, np.inf)
    filled = numbers != 0
    mantissa, exponent = np.frexp(numbers[filled])
    whole = np.ldexp(np.abs(mantissa), 53).astype(np.int64)
    found[filled] = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return found


@dataclass
class Stream:
    """Channel c holds low[c] + unit[c] * n for an integer n in 0..count[c].

    Attributes:
        low, unit: float64 [hidden], exact. unit is a power of two.
        count: int64 [hidden]; 0 where the channel is constant.
        excludes: bool [hidden, hidden]: never is n > 0 in both.
        implies: bool [hidden, hidden]: where n > 0 in the first, so it is in the second.
    """

    low: np.ndarray
    unit: np.ndarray
    count: np.ndarray
    excludes: np.ndarray
    implies: np.ndarray

    @property
    def high(self) -> np.ndarray:
        """The largest value of each channel."""
        return self.low + self.unit * self.count

    @property
    def magnitude(self) -> np.ndarray:
        """The largest absolute value of each channel."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def grid(self) -> np.ndarray:
        """A power of two of which every value of a channel is a multiple; infinity where it is 0."""
        return np.minimum(low_bit(self.low), np.where(self.count > 0, self.unit, np.inf))


def embedded(table: np.ndarray) -> Stream:
    """The stream as the embedding table [vocabulary, hidden] leaves it."""
    low = table.min(axis=0)
    above = table - low
    steps = low_bit(above).min(axis=0)
    unit = np.where(np.isinf(steps), 1.0, steps)
    on = (above > 0).astype(np.float32)
    both, alone = on.T @ on, on.sum(axis=0)
    live = alone > 0
    pairs = live[:, None] & live[None, :]
    return Stream(
        low,
        unit,
        np.rint(above.max(axis=0) / unit).astype(np.int64),
        pairs & (both == 0),
        pairs & (both == alone[:, None]),
    )
