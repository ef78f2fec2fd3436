"""RMSNorm as a constant: how large the squares of a circuit's data can be, and constants that absorb them.

The norm is the same for all data only as long as the squares of all channels but the constants leave no trace
in the mean, see `absorbed_below`. What stands in a place counts until it is taken away, whether or not
anything still reads it.

A channel's maximum holds when all its writers have written. Where these stand in several slots, some may
subtract what others have added before. Intervals then say little, since they know nothing of writers that
exclude each other (all operations write one bus), so what stands in between is taken to be at most TWICE the
maximum. How large it can be in a checkpoint's tensors is shown by the prover.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

import numpy as np

from qgpu.backends.transformer.allocate import BEFORE_LAYERS, Allocation, allocate
from qgpu.backends.transformer.circuit import Channel, Circuit, CounterHead, Form, Neuron
from qgpu.backends.transformer.numerics import (
    DTYPES,
    NORM_BITS,
    absorbs,
    constant_amplitudes,
    scale_of,
)
from qgpu.backends.transformer.schedule import Node, Schedule

TWICE = 2
"""What a channel may be times its maximum before its last writer; see the module's text."""

LARGEST_HIDDEN = 1 << 16
HIDDEN_STEP = 64
"""Hidden sizes that an error names: up to the former, multiples of the latter."""


class NormError(ValueError):
    """The data's squares would show in the mean square of a residual stream of size `hidden`."""

    def __init__(self, hidden: int, squares: float) -> None:
        super().__init__(hidden, squares)
        self.hidden, self.squares = hidden, squares

    def __str__(self) -> str:
        powers = (2.0**k for k in range(24, 0, -1))
        most = next((power for power in powers if _has_constants(self.hidden, power * 0.99)), 0)
        sizes = range(self.hidden - self.hidden % HIDDEN_STEP + HIDDEN_STEP, LARGEST_HIDDEN, HIDDEN_STEP)
        wider = next(size for size in sizes if _has_constants(size, self.squares))
        return (
            f"the squares of its data may sum to {self.squares:,.0f}, and the constants of a hidden size of "
            f"{self.hidden} keep norms exact below {most:,.0f}; those of {wider} are large enough"
        )


class Magnitudes:
    """How large the channels of a scheduled circuit can be in the residual stream, whatever the dtype."""

    def __init__(self, circuit: Circuit, schedule: Schedule) -> None:
        self._slots = 2 * schedule.layers
        self._changes: dict[Channel, dict[int, np.ndarray]] = defaultdict(_unchanged)
        falling = {c for n in schedule.slot_of for c, k, _ in _writes(n) if k < 0 and c.kind == "memory"}
        for channel, table in circuit.token_tables.items():
            self._changes[channel][BEFORE_LAYERS] += (int(table.max(initial=0)), 0)
        for node, slot in schedule.slot_of.items():
            gate = max(0, _highest(node.gate, falling)) if isinstance(node, Neuron) else 1
            for channel, coefficient, most in _writes(node):
                self._changes[channel][slot][int(coefficient < 0)] += abs(coefficient) * most * gate

    def squares(self, allocation: Allocation) -> float:
        """The largest that the sum of the channels' squares can be in any norm, the last one included."""
        sums = np.zeros(self._slots + 1)
        for channel, begin, end in self._holders(allocation):
            values = self._values(channel)
            for slot in range(begin + 1, min(end, self._slots) + 1):
                most = max((value for at, value in values if at < slot), default=0)
                sums[slot] += _in_stream(channel, most) ** 2
        return float(sums.max())

    def _holders(self, allocation: Allocation) -> Iterator[tuple[Channel, int, int]]:
        """Channels with the slots after which they have their places, and up to which."""
        begin = dict.fromkeys(allocation.fresh, BEFORE_LAYERS)
        begin |= {erasure.successor: erasure.slot for erasure in allocation.erasures}
        following: dict[int, int] = {}
        for channel in sorted(begin, key=lambda c: -begin[c]):
            place = allocation.place[channel]
            yield channel, begin[channel], following.get(place, self._slots)
            following[place] = begin[channel]

    def _values(self, channel: Channel) -> list[tuple[int, int]]:
        """Slots that write a channel, and how large it can be after each."""
        changes = self._changes[channel]
        if len(changes) == 1:
            return [(slot, channel.maximum) for slot in changes]
        so_far, values = np.zeros(2), []
        for slot in sorted(changes):
            so_far = so_far + changes[slot]
            values.append((slot, min(int(so_far.max()), TWICE * channel.maximum)))
        return values


def place(
    circuit: Circuit,
    schedule: Schedule,
    magnitudes: Magnitudes,
    hidden: int,
    flags: int = 0,
    alone: Collection[Channel] = (),
) -> tuple[tuple[int, ...], Allocation]:
    """Choose the constants of a residual stream, and allocate the channels behind them and `flags` places.

    Args:
        alone: as of `allocate`.

    Raises:
        AllocationError: the channels alive at once do not fit.
        NormError: no constants absorb their squares.
    """
    squares = 0.0
    while True:
        if not _has_constants(hidden, squares):
            raise NormError(hidden, squares)
        amplitudes = constant_amplitudes(hidden, squares)
        allocation = allocate(circuit, schedule, len(amplitudes) + flags, hidden, alone)
        squares = max(squares, magnitudes.squares(allocation))
        if absorbs(constant_squares(amplitudes), squares):
            return amplitudes, allocation


def constant_squares(amplitudes: Collection[int]) -> list[float]:
    """The squares of the constant channels."""
    return [(a * 2.0**NORM_BITS) ** 2 for a in amplitudes]


def _unchanged() -> dict[int, np.ndarray]:
    return defaultdict(lambda: np.zeros(2))


def _has_constants(hidden: int, squares: float) -> bool:
    try:
        return bool(constant_amplitudes(hidden, squares))
    except ValueError:
        return False


def _writes(node: Node) -> Iterator[tuple[Channel, int, int]]:
    """Channels that a node writes, with the coefficients and the largest of what these multiply.

    Of a neuron it is 1, in units of its gate.
    """
    if isinstance(node, CounterHead):
        yield node.output, 1, node.output.maximum
    elif isinstance(node, Neuron):
        yield from ((channel, k, 1) for channel, k in node.outputs)
    else:
        yield from ((channel, k, node.rows_read) for column in node.columns for channel, k in column.outputs)


def _highest(form: Form, falling: Collection[Channel]) -> int:
    """The largest value of a form, where each channel can be anything within its bounds."""
    high = form.constant
    for channel, coefficient in form.terms.items():
        if coefficient > 0 or channel in falling:
            high += abs(coefficient) * channel.maximum
    return high


def _in_stream(channel: Channel, value: int) -> float:
    scales = [scale_of(channel, dtype) for dtype in DTYPES]
    return max(scale.offset + scale.unit * value for scale in scales)
