"""Sequencing state: the current block, warp and lane, the warps of the launch, and the `any` flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.machine.block import RUN_BLOCKS, block_id_bits
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    CounterHead,
    Form,
    FormLike,
    Head,
    as_form,
    at_least,
    bit_of,
    conjunction,
    equals,
    exactly,
)
from qgpu.backends.transformer.units.incoming import Incoming


@dataclass(frozen=True)
class State:
    """Channels of the sequencing state, the incoming token's effect included.

    Attributes:
        block: bits of the current block's id.
        warp: bits of the current warp.
        at_warp: one-hot current warp.
        last_warp: bits of the launch's last warp.
        at_lane: one-hot current lane; none set after the last lane.
        lane: bits of the current lane.
        passed: for each lane, 1 where the current lane is beyond it.
        run_count: the current block's place in its run.
        run: bits of the run's number.
    """

    block: list[Channel]
    warp: list[Channel]
    at_warp: list[Channel]
    last_warp: list[Channel]
    at_lane: list[Channel]
    lane: list[Channel]
    passed: list[Channel]
    run_count: Channel
    run: list[Channel]


def latch(circuit: Circuit, name: str, write: FormLike, bits: Sequence[FormLike]) -> list[Channel]:
    """A one-row memory: the bits as they were at the latest token where `write` was 1."""
    outputs = circuit.bus(name, len(bits), kind="memory")
    columns = [Column(as_form(bit), [(output, 1)]) for bit, output in zip(bits, outputs, strict=True)]
    always = Form({}, 1)
    circuit.heads.append(Head(name, circuit.current_unit, [always], [always], as_form(write), columns))
    return outputs


def keep_state(circuit: Circuit, machine: MachineDescription, token: Incoming) -> State:
    """Build the latches, the lane counter and the decoded lane and warp."""
    circuit.unit("sequencing")
    flags = token.is_kind
    run_count, place, run = _keep_block(circuit, machine, token)
    warp_bits = max(1, (machine.warps - 1).bit_length())
    moves = as_form(flags["start"]) + flags["final"] + flags["warp"]
    warp = latch(
        circuit, "warp", moves, [conjunction(flags["warp"], bit) for bit in token.argument[:warp_bits]]
    )
    last_warp = latch(circuit, "last_warp", flags["launch"], _launch_warps(circuit, machine, warp_bits))
    at_warp = [circuit.both(f"at_warp.{w}", *equals(list(warp), w)) for w in range(machine.warps)]
    count = circuit.channel("lane_count", machine.lanes, kind="counter")
    circuit.heads.append(
        CounterHead(
            "lane-counter",
            circuit.current_unit,
            as_form(flags["last"]),
            moves + flags["lane"],
            as_form(token.lane_number),
            count,
        )
    )
    at_lane, lane, passed = _decode_lane(circuit, machine, count)
    return State(place + run, warp, at_warp, last_warp, at_lane, lane, passed, run_count, run)


def _keep_block(
    circuit: Circuit, machine: MachineDescription, token: Incoming
) -> tuple[Channel, list[Channel], list[Channel]]:
    """The current block: a count of FINAL tokens in its run, the bits of that, and those of the number of its
    run, which the last start named.
    """
    flags, width = token.is_kind, block_id_bits(machine)
    place_bits = (RUN_BLOCKS - 1).bit_length()
    count = circuit.channel("run_count", RUN_BLOCKS, kind="counter")
    unit, start = circuit.current_unit, as_form(flags["start"])
    circuit.heads.append(
        CounterHead("run-counter", unit, as_form(flags["final"]), start, as_form(token.run_place), count)
    )
    place = circuit.bus("run_place", min(width, place_bits))
    circuit.add_function(count, RUN_BLOCKS, [(output, bit_of(i)) for i, output in enumerate(place)])
    return count, place, latch(circuit, "run", start, token.argument[place_bits:width])


def _launch_warps(circuit: Circuit, machine: MachineDescription, width: int) -> list[Channel]:
    words = vocabulary(machine)
    numbers = np.zeros(words.size, dtype=np.int64)
    numbers[words.first["launch"] :][: machine.warps] = np.arange(machine.warps)
    return [circuit.token_channel(f"token.last_warp.{i}", numbers >> i & 1) for i in range(width)]


def _decode_lane(circuit: Circuit, machine: MachineDescription, count: Channel) -> tuple[list[Channel], ...]:
    lanes, bits = machine.lanes, (machine.lanes - 1).bit_length()
    at_lane = circuit.bus("at_lane", lanes)
    lane = circuit.bus("lane", bits)
    passed = circuit.bus("passed", lanes)
    functions = [(output, exactly(i)) for i, output in enumerate(at_lane)]
    functions += [(output, bit_of(i)) for i, output in enumerate(lane)]
    functions += [(output, at_least(i + 1)) for i, output in enumerate(passed)]
    circuit.add_function(count, lanes, functions)
    return at_lane, lane, passed
