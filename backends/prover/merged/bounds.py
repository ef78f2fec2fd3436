"""Bounds of projections whose inputs are known by intervals, or by their Euclidean size.

Nothing here is exact: what is bounded has to be far off, and SLACK is more than all roundings of a layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.stream import Stream

SLACK = 2.0**-6
"""By how much a sum may be off, as a part of the sum of its terms' sizes: inputs and sums are rounded to 8
bits in bfloat16 (2^-9 each), and the partial sums of n terms to 24 (n 2^-24, for n below 2^16)."""

CLOSED = -128.0
"""silu, sigmoid and softplus are exactly 0 from here down: in float32 exp(128) is infinite, exp(-128) 0."""

FINITE = 2.0**60
"""Numbers below this, their products, and sums of these are finite in float32 and in bfloat16."""

SINGLE = 2.0**100
"""Numbers below this are finite, and so are their sums; what closes a gate is in no product."""


@dataclass(frozen=True)
class Box:
    """Intervals of the channels of a vector: middle and radius, float64 [hidden]."""

    middle: np.ndarray
    radius: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """The largest absolute value of each channel."""
        return np.abs(self.middle) + self.radius

    def sizes(self, rows: np.ndarray) -> np.ndarray:
        """The most that the terms of each row [row, hidden] add up to, signs aside."""
        return np.abs(rows) @ self.size

    def most(self, rows: np.ndarray) -> np.ndarray:
        """Upper bounds of each row, [row]."""
        return rows @ self.middle + np.abs(rows) @ (self.radius + SLACK * self.size)


def normalised_box(stream: Stream, weight: np.ndarray, eps: float) -> Box:
    """What RMSNorm with a weight [hidden] makes of a stream: x / sqrt(mean(x^2) + eps) (1 + weight)."""
    inside = (stream.low <= 0) & (stream.high >= 0)
    least = np.where(inside, 0.0, np.minimum(np.abs(stream.low), np.abs(stream.high)))
    roots = [np.sqrt((size**2).mean() + eps) for size in (least, stream.magnitude)]
    corners = np.array([side * (1.0 + weight) / root for side in (stream.low, stream.high) for root in roots])
    low, high = corners.min(axis=0), corners.max(axis=0)
    return Box((low + high) / 2, (high - low) / 2)
