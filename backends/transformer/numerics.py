"""The numbers with which a stock Qwen3.5 layer computes a circuit exactly.

Scales (source of the layer: transformers, models/qwen3_5/modeling_qwen3_5.py):

- RMSNorm: constant channels of size a_i * 2^16, with the sum of a_i^2 equal to the hidden size, make the mean
  square 2^32 whatever the data, as long as they absorb its squares (`absorbed_below`; `norms` sees to that).
  1 + weight = 2^16 then hands every channel to the layer as it stands in the residual stream. The first two
  constants come out as 1: they are the bias of every projection.
- A neuron's gate is GATE * g for the integer g: silu is 0 at 0, exactly 0 from -GATE down, exact from GATE
  up.
- Keys, queries, written bits, write strengths and read gates are conjunctions with g = 1 for on and g <= 0
  for
  off: 256 g - 224 is 32 or at most -224, where silu gives exactly 32 or 0, and the sigmoid exactly 1 or 0.
- A head's gated RMSNorm is a constant too: each row holds a few columns of size ROW_CONSTANT, beside which
  bits of size 32 vanish in the mean square.
- What a head reads may be off in the last place (the norm's square roots are rounded). Its channels therefore
  stand on an offset: adding the read to the offset rounds it to the exact sum, in float32 and in bfloat16.
  Readers take the offset off again, in their bias.
- The counter adds steps of STEP_LOGIT's small strength. Its channel's unit is the spacing of the dtype's
  numbers beside the offset, so that the addition rounds the approximate count to the exact one; a checkpoint
  is therefore one of its dtype.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from qgpu.backends.transformer.circuit import Channel

NORM_BITS = 16
GATE = 128
AND_SLOPE = 256
AND_BIAS = -224
ON = 32
ROW_CONSTANT_BITS = 26
STEP_LOGIT = -11
STEP_VALUE_BITS = 24
MAX_CONSTANTS = 6


@dataclass(frozen=True)
class Scale:
    """How a channel's value stands in the residual stream: offset + unit * value."""

    offset: float = 0.0
    unit: float = 1.0


COUNTER_OFFSET = 16.0

SPACING_BESIDE_COUNTER = {"float32": 2.0**-19, "bfloat16": 2.0**-3}
"""Distance of neighbouring numbers between COUNTER_OFFSET and twice that; a counter reaches 127 in either."""

DTYPES = tuple(SPACING_BESIDE_COUNTER)
"""The dtypes of checkpoints."""


def scale_of(channel: Channel, dtype: str) -> Scale:
    """Return a channel's scale; see the module's text for why what heads write has an offset.

    The offset of bits and counts is a power of two that is at least the largest value, so that all sums lie
    in one binade: beside 2 the spacing of bfloat16 is 2^-6, beside 16 it is 2^-3. A channel's shift divides
    offset and unit by a power of two, which changes no rounding.
    """
    if channel.kind == "memory":
        size = float(2 << (max(1, channel.maximum) - 1).bit_length())
        return Scale(size / 2**channel.shift, 1 / 2**channel.shift)
    if channel.kind == "counter":
        return Scale(offset=COUNTER_OFFSET, unit=SPACING_BESIDE_COUNTER[dtype])
    return Scale()


BIASES = 2
"""Constants that come out of the norm as 1 and serve as biases: a bias is split so that each part is exact.
"""


def constant_amplitudes(hidden: int, squares: float = 0.0) -> tuple[int, ...]:
    """Return a_1, a_2, ...: integers of at most 8 bits whose squares sum to `hidden`.

    The first BIASES are the same power of two, so that the norm can hand them on as exactly 1. Of all such
    constants that absorb data whose squares have sum `squares`, it is those with the largest biases, then the
    fewest, then the largest ones first.

    Raises:
        ValueError: there are none.
    """
    for first in (1 << e for e in range(7, -1, -1)):
        rest = hidden - BIASES * first * first
        if rest < 0 or not _absorb((first,) * BIASES, squares):
            continue
        for count in range(MAX_CONSTANTS):
            for others in _squares(rest, count):
                if _absorb(found := ((first,) * BIASES) + others, squares):
                    return found
    raise ValueError(f"no constants for hidden size {hidden}")


def _absorb(amplitudes: tuple[int, ...], data: float) -> bool:
    return absorbs([(a * 2.0**NORM_BITS) ** 2 for a in amplitudes], data)


def absorbs(squares: Iterable[float], data: float) -> bool:
    """Whether constants with these squares hide data whose squares have sum `data`, itself rounded."""
    return data * (1 + 2.0**-10) < absorbed_below(squares)


def absorbed_below(squares: Iterable[float]) -> float:
    """Below which sum the squares of the data leave no trace in the sum of all, in any order of summation.

    Half a unit in the last place of the smallest constant's square: then they vanish beside each. Or a
    quarter of one of the two smallest ones' sum: beside one of them the data may be rounded up, to twice
    itself at most, and where two constants have come together that is still below half a unit and vanishes.
    """
    ordered = sorted(map(float, squares))
    alone = _unit(ordered[0]) / 2
    return alone if len(ordered) == 1 else max(alone, _unit(ordered[0] + ordered[1]) / 4)


def _unit(number: float) -> float:
    """The unit in the last place of a number of float32."""
    return 2.0 ** (math.floor(math.log2(number)) - 23)


def split_bias(bias: float) -> tuple[float, float]:
    """Return two numbers of at most 8 significant bits whose sum is `bias`, or the nearest to it that have
    them.
    """
    high = _eight_bits(bias)
    return high, _eight_bits(bias - high)


def _eight_bits(value: float) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 256), exponent - 8)


def _squares(total: int, count: int, limit: int = 255) -> Iterator[tuple[int, ...]]:
    """All falling sequences of so many integers from 1 to `limit` whose squares sum to `total`."""
    if count == 0:
        if total == 0:
            yield ()
        return
    # The first is the largest, so the others cannot make up for more than count times its square.
    for largest in range(min(limit, math.isqrt(total)), 0, -1):
        if count * largest * largest < total:
            return
        for others in _squares(total - largest * largest, count - 1, largest):
            yield (largest, *others)


def row_constants(head_dim: int) -> tuple[int, int]:
    """Return how many columns hold a row's constant, and s where the norm multiplies by 2^s / ROW_CONSTANT.

    With m columns of size C the root mean square is C sqrt(m / head_dim): m is 1 or 2, whichever makes it a
    power of two.

    Raises:
        ValueError: head_dim is not a power of two.
    """
    if head_dim & (head_dim - 1):
        raise ValueError(f"head dimension {head_dim} is not a power of two")
    for columns in (1, 2):
        ratio = head_dim // columns
        if math.isqrt(ratio) ** 2 == ratio:
            return columns, math.isqrt(ratio).bit_length() - 1
    raise ValueError(f"head dimension {head_dim} is too small")
