"""RMSNorm by constant channels: the factor of each channel, which does not depend on the data."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from qgpu.backends.prover.projection import Fail
from qgpu.backends.prover.stream import LARGE, Stream, low_bit
from qgpu.backends.transformer.numerics import absorbed_below, absorbs

PREFIX = 2.0**-9
"""Half a unit in the last of bfloat16's 8 bits, at least: what a product may be off and still round back."""


def normalised(stream: Stream, weight: np.ndarray, dtype: str, name: str, fail: Fail, report: dict) -> Stream:
    """The stream after RMSNorm with a weight [hidden].

    The squares of the constants have sums that float32 holds exactly in any order, and those of all other
    channels together are so small that rounding drops them, see `absorbed_below`.
    """
    constants = (np.abs(stream.low) >= LARGE) & (stream.count == 0)
    squares = stream.low[constants] ** 2
    data = float((np.where(constants, 0.0, stream.magnitude) ** 2).sum())
    if not len(squares):
        fail(name, None, "no constant channel dominates the mean square")
        return stream
    grid, total = float(low_bit(squares).min()), float(squares.sum())
    half = absorbed_below(squares)
    if total / grid >= 2.0**24 or not absorbs(squares, data):
        fail(name, None, f"the data's squares, up to {data:g}, are not below {half:g}: they show in the mean")
    mean = total / len(weight)
    root = math.sqrt(mean)
    if math.frexp(root)[0] != 0.5 or root * root != mean:
        fail(name, None, f"the root mean square {root:g} is not a power of two")
    report["constants"], report["data_squares"], report["absorbed_below"] = int(constants.sum()), data, half
    factor = (1.0 + weight) / root
    power = np.where(factor != 0, 2.0 ** np.rint(np.log2(np.abs(np.where(factor, factor, 1)))), 0) * np.sign(
        factor
    )
    off = np.abs(factor - power) > (0 if dtype == "float32" else PREFIX / 2) * np.abs(power)
    for channel in np.flatnonzero(off & (stream.magnitude > 0)):
        fail(name, int(channel), f"the factor {factor[channel]:g} is not a power of two")
    if dtype == "bfloat16":
        for channel in np.flatnonzero((stream.magnitude > 256 * stream.grid) & ~constants):
            fail(name, int(channel), f"{stream.magnitude[channel]:g} has more than 8 significant bits")
    if (power < 0).any():
        fail(name, int(np.argmax(power < 0)), "a negative factor")
        power = np.abs(power)
    live = power > 0
    return dataclasses.replace(
        stream,
        low=stream.low * power,
        unit=np.where(live, stream.unit * power, 1.0),
        count=np.where(live, stream.count, 0),
    )
