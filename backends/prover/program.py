"""The rules that rows of program memory keep, as conditions on the channels that read them.

The machine checks nothing of a program: a row with two sources for one operand has no defined result
(backends/machine/verify.py refuses it). A proof for all rows would therefore fail; this one is for those that
keep the rules, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from qgpu.backends.machine.block import EXCLUSIVE_ROUTES, FAULTS, block_fields
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.circuit import Channel, Head
from qgpu.backends.transformer.emit import Layout


@dataclass(frozen=True)
class Place:
    """A bit as the heads of a half layer read it into a channel."""

    channel: int
    layer: int


@dataclass(frozen=True)
class Condition:
    """What is taken for granted of bits that heads read.

    Attributes:
        name: the rule, with where it is checked.
        forbidden: sets of one to three bits that are never all 1.
    """

    name: str
    forbidden: tuple[tuple[Place, ...], ...]


def program_conditions(machine: MachineDescription, layout: Layout) -> list[Condition]:
    """The rules of a machine's rows, where its circuit reads them."""
    return list(_Rules(machine, layout).all())


class _Rules:
    def __init__(self, machine: MachineDescription, layout: Layout) -> None:
        self.machine, self.layout = machine, layout
        self.read_in: dict[Channel, int] = {
            channel: layout.schedule.slot_of[head] // 2
            for head in layout.circuit.heads
            if isinstance(head, Head)
            for column in head.columns
            for channel, _ in column.outputs
        }
        self.named = {channel.name: channel for channel in layout.allocation.place}
        self.bits: dict[str, list[int]] = {}
        position = 0
        for field in block_fields(machine):
            self.bits[field.name] = list(range(position, position + field.width))
            position += field.width

    def all(self) -> Iterator[Condition]:
        """Every rule of which the circuit reads all bits."""
        for name, routes in EXCLUSIVE_ROUTES.items():
            yield self._one_of(f"one source or use at most: {name}", [self.bits[r][0] for r in routes])
        for field in block_fields(self.machine):
            if field.choices:
                yield self._one_of(f"one {field.name}", self.bits[field.name])
        pairs = zip(self.bits["guard_true"], self.bits["guard_false"], strict=True)
        both = [(self._bit(one), self._bit(other)) for one, other in pairs]
        yield self._rule("no predicate has to be both 1 and 0", both)
        yield self._rule("dest_lane is the firmware's", [self._row("dest_lane")])
        low, middle, high = self.bits["imm"][:3]
        assert len(FAULTS) == 5
        kinds = [(*self._row("trap"), self._bit(high), self._bit(k)) for k in (low, middle)]
        yield self._rule("a trap's kind is one of the faults", kinds)
        yield self._rule(
            "registers are rows of warp 0, and no launch has more warps than the rows are apart",
            list(self._strides()),
        )

    def _strides(self) -> Iterator[tuple[Place | None, ...]]:
        warp_bits = max(1, (self.machine.warps - 1).bit_length())
        ports = (("a", "a_thread"), ("b", "b_thread"), ("dest", "wr_reg"), ("dest", "dest_to_z"))
        for field, enable in ports:
            for k, bit in enumerate(self.bits[field][:warp_bits]):
                yield (*self._row(enable), self._bit(bit), self._place(f"warp.{k}"))

    def _row(self, name: str) -> tuple[Place | None, ...]:
        return tuple(self._bit(bit) for bit in self.bits[name])

    def _bit(self, bit: int) -> Place | None:
        return self._place(f"field.{bit}")

    def _place(self, name: str) -> Place | None:
        channel = self.named.get(name)
        if channel is None or channel not in self.read_in:
            return None
        return Place(self.layout.allocation.place[channel], self.read_in[channel])

    def _one_of(self, name: str, bits: list[int]) -> Condition:
        return self._rule(name, list(combinations((self._bit(bit) for bit in bits), 2)))

    @staticmethod
    def _rule(name: str, sets: list[tuple[Place | None, ...]]) -> Condition:
        """The rule over bits that have channels."""
        known = (tuple(p for p in one if p is not None) for one in sets if None not in one)
        return Condition(name, tuple(known))
