"""The rules that rows of program memory keep, as conditions on the channels that read them.

The machine checks nothing of a program: a row with two sources for one operand has no defined result
(backends/machine/verify.py refuses it). A proof for all rows would therefore fail; this one is for those that
keep the rules, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.backends.machine.block import EXCLUSIVE_ROUTES, block_fields
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.allocate import live_ranges
from qgpu.backends.transformer.circuit import Head
from qgpu.backends.transformer.emit import Layout


@dataclass(frozen=True)
class Condition:
    """Of some bits of a program row at most one is 1.

    Attributes:
        name: what the bits choose.
        places: the channel of each bit, with the slots of the read and of the channel's last use.
    """

    name: str
    places: tuple[tuple[int, int, int], ...]

    def at(self, slot: int) -> tuple[list[int], list[int]]:
        """Channels that are read in a slot, and those that hold their bit already."""
        new = [place for place, first, _ in self.places if first == slot]
        old = [place for place, first, last in self.places if first < slot <= last]
        return new, old


def program_conditions(machine: MachineDescription, layout: Layout) -> list[Condition]:
    """The rules of a machine's rows, where its circuit reads them."""
    ranges = live_ranges(layout.circuit, layout.schedule)
    slot_of = {
        channel: layout.schedule.slot_of[head]
        for head in layout.circuit.heads
        if isinstance(head, Head)
        for column in head.columns
        for channel, _ in column.outputs
    }
    named = {channel.name: channel for channel in layout.allocation.place}
    positions: dict[str, range] = {}
    position = 0
    for field in block_fields(machine):
        positions[field.name] = range(position, position + field.width)
        position += field.width
    rules = {name: [positions[route][0] for route in routes] for name, routes in EXCLUSIVE_ROUTES.items()}
    rules |= {field.name: list(positions[field.name]) for field in block_fields(machine) if field.choices}
    conditions = []
    for name, bits in rules.items():
        channels = [named[f"field.{bit}"] for bit in bits if f"field.{bit}" in named]
        places = tuple((layout.allocation.place[c], slot_of[c], ranges[c].last) for c in channels)
        conditions.append(Condition(name, places))
    return conditions
