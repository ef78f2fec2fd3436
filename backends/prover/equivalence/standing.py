"""How values stand in the residual stream: on which offset and in which unit, place by place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

DIGITS = {"float32": 24, "bfloat16": 8}
"""Significant bits."""


@dataclass
class Standing:
    """Offset and unit of what each place holds.

    Attributes:
        offset, unit: float64 [hidden]. A place holds offset + unit * value.
        fresh: bool [hidden]: nothing has been erased in the place, nor read into it by a head.
    """

    offset: np.ndarray
    unit: np.ndarray
    fresh: np.ndarray

    @staticmethod
    def at_first(hidden: int) -> Standing:
        """Before the first layer: what the embedding gives is the value, until a head reads into a place."""
        return Standing(np.zeros(hidden), np.ones(hidden), np.ones(hidden, bool))

    def copy(self) -> Standing:
        return Standing(self.offset.copy(), self.unit.copy(), self.fresh.copy())

    def read_into(self, place: int, embedded: float) -> None:
        """A head adds to a place: what the embedding put there is an offset."""
        if self.fresh[place]:
            self.fresh[place], self.offset[place] = False, embedded

    def counted_into(self, place: int, dtype: str) -> None:
        """A counter adds to a place: its unit is the distance of the dtype's numbers beside the offset."""
        offset = self.offset[place]
        self.unit[place] = 2.0 ** (math.frexp(offset)[1] - DIGITS[dtype]) if offset > 0 else 1.0

    def erased(self, place: int, offset: float) -> None:
        """A place is emptied and filled with an offset."""
        self.offset[place], self.unit[place], self.fresh[place] = offset, 1.0, False


@dataclass(frozen=True)
class Constants:
    """Channels that hold the same for every token and dominate the norms.

    Attributes:
        is_constant: bool [hidden].
        seen: float64 [hidden]: what the norms hand on of a constant: 1 of a bias, 0 of the others.
    """

    is_constant: np.ndarray
    seen: np.ndarray
