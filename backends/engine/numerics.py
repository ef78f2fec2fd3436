"""silu and sigmoid as torch computes them in float32."""

import math

import numpy as np

from qgpu.backends.compiling import compiled

SURE = 20.0
"""From here on 1 + exp(-x) is 1 in float32."""

OVERFLOW = -88.72284
"""Below this exp(-x) is infinite in float32."""

_ZERO, _ONE = np.float32(0), np.float32(1)


@compiled
def silu(x):
    """x / (1 + exp(-x)), float32."""
    if OVERFLOW <= x < SURE and x != 0:
        return x / (_ONE + np.float32(math.exp(-np.float64(x))))
    # No branch, which would be one that cannot be foretold.
    return max(x, _ZERO)


@compiled
def sigmoid(x):
    """1 / (1 + exp(-x)), float32."""
    if x >= SURE:
        return _ONE
    if x < OVERFLOW:
        return np.float32(0)
    return _ONE / (_ONE + np.float32(math.exp(-np.float64(x))))
