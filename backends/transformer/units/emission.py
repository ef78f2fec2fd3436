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
    as_form,
    conjunction,
    equals,
    total,
)
from qgpu.backends.transformer.units.address import Address
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.guard import NextLane, read_own_predicates
from qgpu.backends.transformer.units.incoming import Incoming
from qgpu.backends.transformer.units.since import Since
from qgpu.backends.transformer.units.state import State

CLASS_LOGIT = 32
"""Logit of the chosen kind of token over the others; a codeword contributes at most its number of ones."""


@dataclass(frozen=True)
class Emission:
    """Channels of the emitted token.

    Attributes:
        emits_value: the pass emits a part of its result.
        complete: that part is the value's last.
        is_final: and the block ends with it, and the next one begins.
        payload: bits of the part.
        fault: one-hot fault kind.
        starts: the pass emits EXEC.
        target: block id bits of the EXEC.
        ends: the pass emits EXIT.
        next_lane: one-hot LANE.
        next_warp: one-hot WARP, from warp 1 on.
    """

    emits_value: Channel
    complete: Channel
    is_final: Channel
    payload: list[Channel]
    fault: list[Channel]
    starts: Channel
    target: list[Channel]
    ends: Channel
    next_lane: list[Channel]
    next_warp: list[Channel]


@dataclass(frozen=True)
class _Pass:
    """What the choice of the token depends on, besides the result."""

    circuit: Circuit
    machine: MachineDescription
    token: Incoming
    fields: Fields
    address: Address
    lanes: NextLane
    since: Since


def emit_token(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    state: State,
    fields: Fields,
    address: Address,
    lanes: NextLane,
    since: Since,
    result: Sequence[Channel],
) -> Emission:
    """Build the choice of the emitted token and the readout of the logits.

    All of it is one layer of neurons, after the layer that gives the result's bits and the active lane.
    """
    circuit.unit("emission")
    here = _Pass(circuit, machine, token, fields, address, lanes, since)
    payload = circuit.bus("payload", machine.payload_bits, kind="memory")
    written = [
        circuit.both(f"writes_predicate.{p}", *equals(fields.bits["dest_pred"], p))
        for p in range(machine.predicates)
    ]
    read_own_predicates(circuit, machine, token, state, fields, written, payload)
    circuit.unit("emission")
    emits, complete, is_final = _value_part(here, written, result, payload)
    starts, target, ends = _successor(here)
    emission = Emission(
        emits, complete, is_final, payload, _faults(here), starts, target, ends, *_places(here, machine.warps)
    )
    _read_out(circuit, vocabulary(machine), emission)
    return emission


def _places(here: _Pass, warps: int) -> tuple[list[Channel], list[Channel]]:
    """One-hot lane and one-hot warp to go on at."""
    circuit, lanes = here.circuit, here.lanes
    elsewhere = 1 - lanes.here.form()
    lane = [circuit.both(f"next_lane.{k}", first, elsewhere) for k, first in enumerate(lanes.first)]
    leaves = (lanes.none, lanes.warp_left)
    warp = [circuit.both(f"next_warp.{w}", *leaves, lanes.at_warp[w - 1]) for w in range(1, warps)]
    return lane, warp


def _faults(here: _Pass) -> list[Channel]:
    circuit, fields, address = here.circuit, here.fields, here.address
    fault = [circuit.channel(f"fault.{kind}") for kind in FAULTS]
    trap, active = fields.flag("trap"), here.lanes.here
    for kind, channel in enumerate(fault):
        circuit.add_and(channel, active, trap, *equals(fields.bits["imm"][:3], kind))
    untrapped = 1 - trap.form()
    circuit.add_and(fault[FAULTS.index("out-of-bounds")], active, untrapped, address.out_of_bounds)
    circuit.add_and(fault[FAULTS.index("misaligned")], active, untrapped, address.misaligned)
    return fault


def _value_part(
    here: _Pass, written: Sequence[Channel], result: Sequence[Channel], payload: Sequence[Channel]
) -> tuple[Channel, Channel, Channel]:
    """Build the payload, and the flags that a value is emitted, that it is complete, and that it is final."""
    circuit, fields = here.circuit, here.fields
    emits, complete, is_final = (circuit.channel(name) for name in ("emits_value", "complete", "is_final"))
    wrong = as_form(here.address.out_of_bounds) + here.address.misaligned + fields.flag("trap")
    valid = conjunction(here.lanes.here, 1 - wrong)
    circuit.neuron(valid, (emits, 1))
    falls, falls_idle = _falls(here)
    closing = conjunction(here.lanes.single, falls)
    writes = fields.flag("wr_pred").form()
    bits = here.machine.payload_bits
    for part, chosen in enumerate(here.token.part):
        on = conjunction(valid, chosen, 1 - writes)
        for k, output in enumerate(payload):
            circuit.add_and(output, on, result[min(31, bits * part + k)])
        rest = result[min(31, bits * (part + 1) - 1) :]
        for flag, enable in ((complete, on), (is_final, conjunction(on, closing))):
            circuit.neuron(enable - total(rest), (flag, 1))
            circuit.neuron(enable + total(rest) - len(rest), (flag, 1))
    predicate = conjunction(valid, writes)
    circuit.neuron(predicate, (complete, 1))
    circuit.add_and(is_final, predicate, closing)
    idle = conjunction(valid, here.lanes.single, falls_idle, here.token.part[0])
    circuit.neuron(idle - total(result), (is_final, 1))
    for output, chosen in (*zip(payload, written, strict=False), (payload[-1], predicate)):
        _add_nonzero(circuit, result, conjunction(predicate, chosen), output)
    return emits, complete, is_final


def _add_nonzero(circuit: Circuit, result: Sequence[Channel], enable: Form, output: Channel) -> None:
    """Add 1 to `output` where `enable` holds and a bit of the result is set."""
    ones = total(result) + (enable - 1) * len(result)
    circuit.neuron(ones, (output, 1))
    circuit.neuron(ones - 1, (output, -1))


def _falls(here: _Pass) -> tuple[Channel, Channel]:
    """Whether the block falls to the next one with its last lane, and whether it does if no result is set."""
    circuit, flag = here.circuit, here.fields.flag
    ends = (flag("fall"), 1 - here.lanes.warp_left.form())
    branches = flag("branch_any")
    falls = circuit.both("falls", *ends, 1 - branches.form())
    return falls, circuit.both("falls_idle", *ends, branches, 1 - here.since.any_nonzero.form())


def _successor(here: _Pass) -> tuple[Channel, list[Channel], Channel]:
    circuit, fields = here.circuit, here.fields
    takes = circuit.channel("takes_branch")
    circuit.add_and(takes, fields.flag("branch_any"), here.since.any_nonzero)
    circuit.add_and(takes, fields.flag("skip_idle"), 1 - here.since.visited.form())
    done = conjunction(here.lanes.none, 1 - here.lanes.warp_left.form())
    stays, leaves = 1 - takes.form(), fields.flag("next_exit")
    starts, ends = circuit.channel("emits_exec"), circuit.both("emits_exit", done, stays, leaves)
    circuit.add_and(starts, done, takes)
    circuit.add_and(starts, done, stays, 1 - leaves.form())
    target = circuit.bus("target", len(fields.bits["next"]))
    for k, output in enumerate(target):
        circuit.add_and(output, done, takes, fields.bits["taken"][k])
        circuit.add_and(output, done, stays, 1 - leaves.form(), fields.bits["next"][k])
    return starts, target, ends


def _read_out(circuit: Circuit, words: Vocabulary, emission: Emission) -> None:
    """Give each token its logit.

    A codeword c scores sum(c_i (2 x_i - 1)): its number of ones where x = c, at least 1 less elsewhere. The
    chosen kind scores CLASS_LOGIT more. Bits that stand where their kind is not chosen count less than that.
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
    is_more = emission.emits_value.form() - emission.complete
    is_last = emission.complete.form() - emission.is_final
    for kind, chosen, bits in (
        ("last", is_last, emission.payload),
        ("final", emission.is_final.form(), emission.payload),
        ("more", is_more, emission.payload),
        ("exec", emission.starts.form(), emission.target),
    ):
        for index in range(words.counts[kind]):
            logits[words.id(kind, index)] = _score(bits, index) + chosen * CLASS_LOGIT


def _score(bits: Sequence[Channel], code: int) -> Form:
    return Form({bit: 2 for k, bit in enumerate(bits) if code >> k & 1}, -code.bit_count())
