"""Emission: what the pass says, and the logits that make it the largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.backends.machine.block import FAULTS
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.tokens import Vocabulary, vocabulary
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Form,
    FormLike,
    as_form,
    conjunction,
    equals,
    total,
)
from qgpu.backends.transformer.units.address import Address
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.guard import NextLane
from qgpu.backends.transformer.units.incoming import Incoming

CLASS_LOGIT = 32
"""Logit of the chosen kind of token over the others; a codeword contributes at most its number of ones."""


@dataclass(frozen=True)
class Emission:
    """Channels of the emitted token.

    Attributes:
        emits_value: the pass emits a part of its result.
        is_last: that part is the value's last.
        payload: bits of the part.
        fault: one-hot fault kind.
        starts: the pass emits EXEC.
        target: block id bits of the EXEC.
        ends: the pass emits EXIT.
        next_lane: one-hot LANE.
        next_warp: one-hot WARP, from warp 1 on.
    """

    emits_value: Channel
    is_last: Channel
    payload: list[Channel]
    fault: list[Channel]
    starts: Channel
    target: list[Channel]
    ends: Channel
    next_lane: list[Channel]
    next_warp: list[Channel]


def emit_token(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    fields: Fields,
    address: Address,
    next_lane: NextLane,
    any_nonzero: Channel,
    result: Sequence[Channel],
) -> Emission:
    """Build the choice of the emitted token and the readout of the logits."""
    circuit.unit("emission")
    fault, faulty = _faults(circuit, fields, address, next_lane.here)
    emits = circuit.channel("emits_value")
    trap = fields.flag("trap").form()
    circuit.add_and(emits, next_lane.here, 1 - trap, 1 - faulty)
    payload, is_last = _value_part(circuit, machine, token, emits, result)
    starts, target, ends = _successor(circuit, fields, next_lane.done, any_nonzero)
    emission = Emission(emits, is_last, payload, fault, starts, target, ends, next_lane.lane, next_lane.warp)
    _read_out(circuit, vocabulary(machine), emission)
    return emission


def _faults(circuit: Circuit, fields: Fields, address: Address, here: Channel) -> tuple[list[Channel], Form]:
    fault = [circuit.channel(f"fault.{kind}") for kind in FAULTS]
    trap = fields.flag("trap")
    for kind, channel in enumerate(fault):
        circuit.add_and(channel, here, trap, *equals(fields.bits["imm"][:3], kind))
    untrapped = 1 - trap.form()
    circuit.add_and(fault[FAULTS.index("out-of-bounds")], here, untrapped, address.out_of_bounds)
    circuit.add_and(fault[FAULTS.index("misaligned")], here, untrapped, address.misaligned)
    return fault, as_form(address.out_of_bounds) + address.misaligned


def _value_part(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    emits: Channel,
    result: Sequence[Channel],
) -> tuple[list[Channel], Channel]:
    bits = machine.payload_bits
    payload = circuit.bus("payload", bits)
    is_last = circuit.channel("is_last")
    for part, chosen in enumerate(token.part):
        for k, output in enumerate(payload):
            circuit.add_and(output, emits, chosen, result[min(31, bits * part + k)])
        rest = result[min(31, bits * (part + 1) - 1) :]
        ones = total(rest)
        on = conjunction(emits, chosen)
        circuit.neuron(on - ones, (is_last, 1))
        circuit.neuron(on + ones - len(rest), (is_last, 1))
    return payload, is_last


def _successor(
    circuit: Circuit, fields: Fields, done: Channel, any_nonzero: Channel
) -> tuple[Channel, list[Channel], Channel]:
    takes = circuit.both("takes_branch", fields.flag("branch_any"), any_nonzero)
    falls = 1 - takes.form()
    leaves = fields.flag("next_exit")
    starts, ends = circuit.channel("emits_exec"), circuit.both("emits_exit", done, falls, leaves)
    circuit.add_and(starts, done, takes)
    circuit.add_and(starts, done, falls, 1 - leaves.form())
    target = circuit.bus("target", len(fields.bits["next"]))
    for k, output in enumerate(target):
        circuit.add_and(output, done, takes, fields.bits["taken"][k])
        circuit.add_and(output, done, falls, 1 - leaves.form(), fields.bits["next"][k])
    return starts, target, ends


def _read_out(circuit: Circuit, words: Vocabulary, emission: Emission) -> None:
    """Give each token its logit.

    A codeword c scores sum(c_i (2 x_i - 1)): its number of ones where x = c, at least 1 less elsewhere. The
    bits x are 0 unless their kind of token is chosen, and the chosen kind scores CLASS_LOGIT more.
    """
    logits = circuit.readout.logits
    one_hot = (
        ("lane", 0, emission.next_lane),
        ("warp", 1, emission.next_warp),
        ("fault", 0, emission.fault),
        ("exit", 0, [emission.ends]),
    )
    for kind, first, channels in one_hot:
        for index, channel in enumerate(channels, first):
            logits[words.id(kind, index)] = channel.form() * (2 * CLASS_LOGIT)
    is_more = emission.emits_value.form() - emission.is_last
    for kind, chosen, bits in (
        ("last", emission.is_last, emission.payload),
        ("more", is_more, emission.payload),
        ("exec", emission.starts, emission.target),
    ):
        for index in range(words.counts[kind]):
            logits[words.id(kind, index)] = _score(bits, index) + as_form(chosen) * CLASS_LOGIT


def _score(bits: Sequence[FormLike], code: int) -> Form:
    return total(as_form(bit) * 2 - 1 for k, bit in enumerate(bits) if code >> k & 1)
