"""The numbers with which text and machine share one residual stream.

A stream of H + W channels: Qwen's H come first, the W others after them. Of these, the first hold the
machine's constants, the next FLAGS mark text, and the others are the machine's alone; what else it computes
lies in Qwen's channels, which its own tokens leave free.

Text in the wider stream. RMSNorm divides by sqrt(mean + eps), and the mean over H + W channels of a text
token is smaller by H / (H + W). With the stream scaled by 2^k and a constant energy E in the flags,

    4^k (sum x^2) / (H + W) + E / (H + W) + eps = 4^k H / (H + W) (mean + eps)    for E = (4^k H - H - W) eps,

so every norm is the base's own times sqrt((H + W) / H), eps included, and 1 + weight takes the factor's
inverse. Scaling by 2^k loses no bit of any tensor, so the norms' weights are all that is rounded. k is the
least with E >= 0.

Text in compiled layers. A flag is some 2^-5, and each row of a compiled projection has -2^FLAG_BITS on the
first one, which is more than all else that the row can read on a text token (`check_flag` proves it of a
base's embedding). So keys, queries, values and gates are silu of a large negative number, and write
strengths sigmoid of one: exactly 0, wherever their channels lie, also for the convolution's earlier taps.
Neurons have `up` on a constant alone, which text does not have. All that is added to the stream is 0.

The machine in Qwen's layers. On its own tokens the constant comes out of the norm as 1, and INERT on it
closes every gate: the neurons', the reads', the decay, the writes, the attention's output. All that is
added is 0.

The head. Text rows have TEXT_OFF on the constant, machine rows -2^MACHINE_OFF_BITS on the flag.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qgpu.backends.transformer.merge.base import MergeError
from qgpu.backends.transformer.numerics import NORM_BITS

FLAGS = 2
"""Channels that mark text: the second one holds what the first, rounded to the dtype, leaves of the energy.
"""

FLAG_BITS = 40
INERT = -(2.0**14)
TEXT_OFF = -(2.0**11)
MACHINE_OFF_BITS = 16

MARGIN = 4
"""How many times over the flag outweighs what a row can read."""

SILU_IS_ZERO = 128
"""silu(x) and sigmoid(x) are exactly 0 for x up to minus this, in float32 and in bfloat16."""


@dataclass(frozen=True)
class TextScale:
    """How text stands in the stream.

    Attributes:
        bits: k, the stream is scaled by 2^k.
        flags: the flag channels' values.
        gain: what 1 + weight of every norm is multiplied by on Qwen's channels.
    """

    bits: int
    flags: tuple[float, ...]
    gain: float

    @property
    def factor(self) -> float:
        """2^k."""
        return 2.0**self.bits


def text_scale(hidden: int, widened: int, eps: float, dtype: str) -> TextScale:
    """Return how text of a base of `hidden` channels stands in a stream of `widened`, in `dtype`."""
    bits = 0
    while 4**bits * hidden < widened:
        bits += 1
    energy = (4**bits * hidden - widened) * eps
    flags = []
    for _ in range(FLAGS):
        flags.append(_rounded_down(math.sqrt(max(0.0, energy - sum(f * f for f in flags))), dtype))
    if flags[0] == 0:
        # The stream is 4^k times as wide: the norm is exact without energy, but text still needs its mark.
        flags[0] = 2.0**-16
    return TextScale(bits, tuple(flags), math.sqrt(hidden / widened))


def _rounded_down(value: float, dtype: str) -> float:
    """The largest number of a dtype up to a positive one."""
    mantissa, exponent = math.frexp(value)
    significant = 24 if dtype == "float32" else 8
    return math.ldexp(math.floor(math.ldexp(mantissa, significant)), exponent - significant)


def folded_norm(weight: np.ndarray, gain: float) -> np.ndarray:
    """The zero-centred weight of a norm on Qwen's channels in the wider stream, as float64."""
    return (1.0 + weight.astype(np.float64)) * gain - 1.0


def check_flag(scale: TextScale, largest_text: float, largest_row: float) -> None:
    """Check that every compiled projection is off on every text token.

    What a row reads of a text token is at most |row| |token| (Cauchy and Schwarz), before the norm divides
    both by the token's root mean square and multiplies them by 2^16.

    Args:
        largest_text: largest Euclidean norm of a text row of the scaled embedding.
        largest_row: the same of a row of the compiled projections, the flag aside.

    Raises:
        MergeError: the flag may not outweigh the rest.
    """
    flag = scale.flags[0] * 2.0**FLAG_BITS
    # The token's root mean square is below its size; the norm takes both to 2^NORM_BITS of it.
    closed = (1 - 1 / MARGIN) * flag * 2.0**NORM_BITS >= SILU_IS_ZERO * (1 + largest_text)
    if not closed or flag < MARGIN * largest_row * largest_text:
        raise MergeError(
            f"a text token of size {largest_text:.3g} can outweigh the flag {scale.flags[0]:.3g} in a row of "
            f"size {largest_row:.3g}"
        )
