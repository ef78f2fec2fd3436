"""The incoming token: what it says, the parts before it, and the value that it completes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.machine.block import RUN_BLOCKS, block_id_bits
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.firmware import ENTRY_BLOCK, firmware_id
from qgpu.backends.machine.tokens import STAGE_PARTS, Vocabulary, vocabulary
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    Form,
    FormLike,
    Head,
    as_form,
    conjunction,
)

STARTS = ("launch", "firmware", "exec")
"""Token kinds that start a block."""


@dataclass(frozen=True)
class Incoming:
    """Channels of the incoming token.

    Attributes:
        is_kind: flags by name: start (of a block), launch, reset, value (LAST or FINAL), last, final, more,
            lane, warp, stage, rom.
        argument: the token's number in binary: payload, block id, lane, warp, slice.
        lane_number: the lane of a LANE token as one integer, else 0.
        run_place: the place in its run (see RUN_BLOCKS) of the block that a token starts, else 0.
        after_reset: whether the token before is RESET.
        earlier: for tap 1 to 3, the payload bits of the token so many before, 0 where it is not MORE.
        more_before: for tap 1 to 2, whether that token is MORE.
        part: for each part, whether this pass emits that part of its result.
        value: the 32 bits of the value that this token completes; 0 where it completes none.
    """

    is_kind: dict[str, Channel]
    argument: list[Channel]
    lane_number: Channel
    run_place: Channel
    after_reset: Channel
    earlier: dict[int, list[Channel]]
    more_before: dict[int, Channel]
    part: list[Form]
    value: list[Channel]


def read_incoming(circuit: Circuit, machine: MachineDescription) -> Incoming:
    """Build the token table, the head that shows the tokens before, and the assembly of values."""
    circuit.unit("incoming token")
    words = vocabulary(machine)
    flags = _flags(circuit, words)
    argument = _argument(circuit, machine, words)
    lanes = np.zeros(words.size, dtype=np.int64)
    lanes[words.first["lane"] :][: machine.lanes] = np.arange(machine.lanes)
    lane_number = circuit.token_channel("token.lane_number", lanes)
    run_place = circuit.token_channel("token.run_place", _started_block(machine, words) % RUN_BLOCKS)
    after_reset = circuit.channel("after_reset", kind="memory")
    reset = Column(flags["reset"].form(), [(after_reset, 1)], tap=1)
    earlier, more_before = _tokens_before(circuit, machine, flags["more"], argument, reset)
    more, first = as_form(flags["more"]), as_form(more_before[1])
    part = [1 - more, conjunction(more, 1 - first), conjunction(more, first)]
    part = [part[0], *(circuit.both(f"part.{i}", more, f).form() for i, f in ((1, 1 - first), (2, first)))]
    value = circuit.bus("value", 32)
    _assemble(circuit, machine, flags["value"], argument, earlier, more_before, value)
    parts = part[: machine.parts]
    return Incoming(flags, argument, lane_number, run_place, after_reset, earlier, more_before, parts, value)


def _flags(circuit: Circuit, words: Vocabulary) -> dict[str, Channel]:
    alone = ("launch", "reset", "last", "final", "more", "lane", "warp", "stage", "rom")
    kinds = {"start": STARTS, "value": ("last", "final"), **{kind: (kind,) for kind in alone}}
    flags = {}
    for name, members in kinds.items():
        table = np.zeros(words.size, dtype=np.int64)
        for kind in members:
            table[words.first[kind] :][: words.counts[kind]] = 1
        flags[name] = circuit.token_channel(f"token.is_{name}", table)
    return flags


def _argument(circuit: Circuit, machine: MachineDescription, words: Vocabulary) -> list[Channel]:
    numbers = np.zeros(words.size, dtype=np.int64)
    for kind in ("lane", "warp", "stage", "rom", "last", "final", "more"):
        numbers[words.first[kind] :][: words.counts[kind]] = np.arange(words.counts[kind])
    numbers += _started_block(machine, words)
    width = max(machine.payload_bits, block_id_bits(machine))
    return [circuit.token_channel(f"token.argument.{i}", numbers >> i & 1) for i in range(width)]


def _started_block(machine: MachineDescription, words: Vocabulary) -> np.ndarray:
    """The block that each token starts, 0 where it starts none."""
    numbers = np.zeros(words.size, dtype=np.int64)
    numbers[words.first["exec"] :][: words.counts["exec"]] = np.arange(words.counts["exec"])
    numbers[words.first["launch"] :][: words.counts["launch"]] = ENTRY_BLOCK
    for index, name in enumerate(words.firmware_names):
        numbers[words.id("firmware", index)] = firmware_id(machine, name)
    return numbers


def _tokens_before(
    circuit: Circuit,
    machine: MachineDescription,
    more: Channel,
    argument: Sequence[Channel],
    reset: Column,
) -> tuple[dict[int, list[Channel]], dict[int, Channel]]:
    columns = [reset]
    earlier: dict[int, list[Channel]] = {}
    more_before: dict[int, Channel] = {}
    for tap in range(1, STAGE_PARTS + 1):
        earlier[tap] = circuit.bus(f"before{tap}.payload", machine.payload_bits, kind="memory")
        for bit, output in enumerate(earlier[tap]):
            columns.append(Column(conjunction(more, argument[bit]), [(output, 1)], tap=tap))
        more_before[tap] = circuit.channel(f"before{tap}.is_more", kind="memory")
        columns.append(Column(more.form(), [(more_before[tap], 1)], tap=tap))
    always = Form({}, 1)
    circuit.heads.append(Head("tokens-before", circuit.current_unit, [always], [always], always, columns))
    return earlier, more_before


def _assemble(
    circuit: Circuit,
    machine: MachineDescription,
    completes: Channel,
    argument: Sequence[Channel],
    earlier: dict[int, list[Channel]],
    more_before: dict[int, Channel],
    value: Sequence[Channel],
) -> None:
    """Join the parts of a value: low parts first, the last one sign-extended."""
    bits = machine.payload_bits
    for parts in range(1, machine.parts + 1):
        count: list[FormLike] = [completes, *(more_before[tap] for tap in range(1, parts))]
        if parts < machine.parts:
            count.append(~more_before[parts].form())
        sign = [output for i, output in enumerate(value) if i >= bits * parts]
        if sign:
            circuit.neuron(conjunction(*count, argument[bits - 1]), *((output, 1) for output in sign))
        for i in range(min(32, bits * parts)):
            tap = parts - 1 - i // bits
            source = earlier[tap][i % bits] if tap else argument[i % bits]
            circuit.add_and(value[i], *count, source)
