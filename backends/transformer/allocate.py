"""The allocator: colours channels with places of the residual stream by live range.

What a layer writes to the residual stream is added, so a place is free again only when its old content has
been taken away. What stands in a place is never negative, so one neuron does it: it adds -1 times what it
reads. That neuron may run in the slot of the last reader (both read before either writes) or later.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass

from qgpu.backends.transformer.circuit import Channel, Circuit
from qgpu.backends.transformer.schedule import Schedule, inputs_of, outputs_of

BEFORE_LAYERS = -1
"""The slot of the embedding."""


@dataclass(frozen=True)
class LiveRange:
    """Slots of a channel's first write and last read."""

    first: int
    last: int

    @property
    def prepared(self) -> int:
        """The neurons' slot by which its place has to be empty: that of the first write, or one before."""
        return self.first if self.first % 2 else self.first - 1

    @property
    def erased(self) -> int:
        """The first neurons' slot in which the place may be emptied: that of the last reader, or the next."""
        return self.last | 1


@dataclass(frozen=True)
class Erasure:
    """A place whose content a neuron takes away in a slot.

    Attributes:
        place: the place.
        slot: the neuron's slot.
        successor: the channel that has the place from then on.
    """

    place: int
    slot: int
    successor: Channel


@dataclass(frozen=True)
class Allocation:
    """Where channels live.

    Attributes:
        place: place of each channel, from 0.
        places: number of places used.
        peak: largest number of channels that need a place at once, a lower bound of `places`.
        erasures: what has to be taken away when.
        fresh: channels that are the first in their place.
    """

    place: dict[Channel, int]
    places: int
    peak: int
    erasures: list[Erasure]
    fresh: set[Channel]


def live_ranges(circuit: Circuit, schedule: Schedule) -> dict[Channel, LiveRange]:
    """Return the live range of each channel that is read; the readout reads after the last slot.

    A channel that nothing reads has no place: its erasure would have no reader's slot to stand in.
    """
    first: dict[Channel, int] = dict.fromkeys(circuit.token_tables, BEFORE_LAYERS)
    last: dict[Channel, int] = {}
    for node, slot in schedule.slot_of.items():
        for channel in outputs_of(node):
            first[channel] = min(first.get(channel, slot), slot)
        for channel in inputs_of(node):
            last[channel] = max(last.get(channel, slot), slot)
    for form in circuit.readout.logits.values():
        for channel in form.terms:
            last[channel] = 2 * schedule.layers
    return {channel: LiveRange(first[channel], last[channel]) for channel in first if channel in last}


def allocate(
    circuit: Circuit, schedule: Schedule, reserved: int, places: int, alone: Collection[Channel] = ()
) -> Allocation:
    """Give each channel a place; fresh places are used before any is reused, since reuse costs a neuron.

    Args:
        circuit: the circuit.
        schedule: its schedule.
        reserved: places of the residual stream that hold constants.
        places: size of the residual stream.
        alone: channels that share their places with none; they have the first ones.

    Raises:
        AllocationError: the channels alive at once do not fit.
    """
    ranges = live_ranges(circuit, schedule)
    available = places - reserved
    free: list[tuple[int, int]] = []
    place: dict[Channel, int] = {}
    erasures: list[Erasure] = []
    fresh: set[Channel] = set()
    for channel in filter(set(alone).__contains__, ranges):
        place[channel] = reserved + len(fresh)
        fresh.add(channel)
    sharing = [channel for channel in ranges if channel not in fresh]
    for channel in sorted(sharing, key=lambda c: (ranges[c].first, ranges[c].last)):
        live = ranges[channel]
        if len(fresh) < available:
            place[channel] = reserved + len(fresh)
            fresh.add(channel)
        elif free and free[0][0] <= live.prepared and live.first > BEFORE_LAYERS:
            slot, place[channel] = heapq.heappop(free)
            erasures.append(Erasure(place[channel], slot, channel))
        else:
            peak = _peak(ranges)
            raise AllocationError(
                f"the residual stream has {available} places for channels; {peak} are alive at once"
            )
        heapq.heappush(free, (live.erased, place[channel]))
    return Allocation(place, len(fresh), _peak(ranges), erasures, fresh)


class AllocationError(ValueError):
    """More channels are alive at once than the residual stream has places."""


def _peak(ranges: dict[Channel, LiveRange]) -> int:
    """Channels that need a place at once; one that is emptied in a slot may be filled in it."""
    events = [(live.prepared, 1) for live in ranges.values()] + [
        (live.erased, -1) for live in ranges.values()
    ]
    alive = peak = 0
    for _, change in sorted(events):
        alive += change
        peak = max(peak, alive)
    return peak
