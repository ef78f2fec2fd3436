"""The abstract residual stream: what each channel can hold, and the variable that says which of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.facts import Facts, Literals, bit_set

LARGE = 2.0**16
"""Channels from this size on are the constants that dominate the mean square."""


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
    """Channel c holds low[c] + unit[c] * n for the integer n of variable at[c], 0 to count[c].

    Attributes:
        facts: of all variables.
        at: int64 [hidden].
        low, unit: float64 [hidden], exact. unit is a power of two.
        count: int64 [hidden]; 0 where the channel is constant.
        held: bool [hidden], whether anything was written into the channel since it was last emptied.
    """

    facts: Facts
    at: np.ndarray
    low: np.ndarray
    unit: np.ndarray
    count: np.ndarray
    held: np.ndarray

    def copy(self) -> Stream:
        """The same stream, with facts of its own of the variables that it holds."""
        facts = self.facts.copy()
        facts.live = bit_set(self.at.tolist())
        return dataclasses.replace(self, facts=facts)

    def same(self, other: Stream) -> bool:
        """Whether no more and no less is known of the channels than of another's."""
        names = ("at", "low", "unit", "count", "held")
        alike = (np.array_equal(getattr(self, n), getattr(other, n)) for n in names)
        return all(alike) and self.facts.same(other.facts)

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
    count = np.rint(above.max(axis=0) / unit).astype(np.int64)
    on = (above > 0).astype(np.float32)
    both, alone = on.T @ on, on.sum(axis=0)
    facts = Facts()
    for channel in range(table.shape[1]):
        live = np.flatnonzero(alone[:channel] > 0) if alone[channel] else np.zeros(0, np.int64)
        apart = live[both[channel, live] == 0]
        implied = live[both[channel, live] == alone[channel]]
        made = facts.new(int(count[channel]), Literals(bit_set(implied), bit_set(apart)))
        assert made == channel
        for other in live[both[channel, live] == alone[live]].tolist():
            facts.implies[other] |= 1 << channel
            facts.implied[channel] |= 1 << other
        facts.tokens[channel] = np.flatnonzero(on[:, channel])
    held = (count > 0) | (np.abs(low) >= LARGE)
    return Stream(facts, np.arange(table.shape[1]), low, unit, count, held)
