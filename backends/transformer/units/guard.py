"""The predicate file and the choice of the next lane: guards, the first active lane, the next warp."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    Form,
    Head,
    as_form,
    conjunction,
    equals,
    number,
    total,
)
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.incoming import Incoming
from qgpu.backends.transformer.units.state import State


@dataclass(frozen=True)
class NextLane:
    """Channels that say where the block goes on.

    Attributes:
        here: the current lane is active.
        lane: one-hot lane to go on at, where the current one is not active and a later one of the warp is.
        warp: one-hot warp to go on at, from warp 1 on, where no lane of this one is left and a warp is.
        done: no lane and no warp is left.
    """

    here: Channel
    lane: list[Channel]
    warp: list[Channel]
    done: Channel


def choose_lane(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    nonzero: Channel,
    state: State,
    fields: Fields,
) -> NextLane:
    """Build the predicate file and the selection of the next active lane."""
    circuit.unit("predicates")
    met = [
        circuit.channel(f"guards_met.{lane}", machine.predicates, "memory") for lane in range(machine.lanes)
    ]
    _predicate_file(circuit, machine, token, nonzero, state, fields, met)
    circuit.unit("lane selection")
    wanted = total(fields.bits["guard_true"])
    visit, scalar = fields.flag("visit"), as_form(fields.flag("scalar"))
    left = []
    for lane in range(machine.lanes):
        only_first = [1 - scalar] if lane else []
        ahead = conjunction(visit, 1 - state.passed[lane].form(), *only_first)
        left.append(circuit.channel(f"lane_left.{lane}"))
        circuit.neuron(ahead + met[lane] - wanted, (left[-1], 1))
    first = [
        circuit.both(f"first_lane.{lane}", left[lane].form() - total(left[:lane]))
        for lane in range(machine.lanes)
    ]
    here = circuit.channel("lane_active")
    go_on = []
    for lane in range(machine.lanes):
        circuit.add_and(here, first[lane], state.at_lane[lane])
        go_on.append(circuit.both(f"next_lane.{lane}", first[lane], 1 - state.at_lane[lane].form()))
    none_left = 1 - total(first)
    warp, done = _choose_warp(circuit, machine, state, fields, none_left)
    return NextLane(here, go_on, warp, done)


def _choose_warp(
    circuit: Circuit, machine: MachineDescription, state: State, fields: Fields, none_left: Form
) -> tuple[list[Channel], Channel]:
    more = circuit.channel("warp_left")
    distance = number(state.last_warp) - number(state.warp)
    circuit.neuron(distance, (more, 1))
    circuit.neuron(distance - 1, (more, -1))
    every = fields.flag("all_warps")
    warp = [
        circuit.both(f"next_warp.{w}", none_left, every, more, state.at_warp[w - 1])
        for w in range(1, machine.warps)
    ]
    done = circuit.channel("block_done")
    circuit.add_and(done, none_left, 1 - more.form())
    circuit.add_and(done, none_left, more, 1 - as_form(every))
    return warp, done


def _predicate_file(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    nonzero: Channel,
    state: State,
    fields: Fields,
    met: list[Channel],
) -> None:
    """Add to `met[l]`, for each lane of the current warp, how many predicates of `guard_true` are 1 in it.

    Those of `guard_false` that are 1 count against it: the guard holds where `met` is the number of the
    former.

    A row is a thread; a column is a lane and a guard. One query reads the rows of a whole warp: each
    lane's bit stands in a column of its own, and the row of lane 0 alone carries the constant, which RESET
    writes to all of those rows at once (a power of four of them, unused rows included: the key is then 1 /
    2^n in each).
    """
    reset = token.is_kind["reset"]
    lane_key = [state.at_lane_before[0].form() + reset, *(bit.form() for bit in state.at_lane_before[1:])]
    warp_key = [state.at_warp[0].form()]
    for w in range(1, machine.warps):
        channel = circuit.channel(f"predicate_warp.{w}")
        circuit.neuron(state.at_warp[w], (channel, 1))
        circuit.neuron(reset, (channel, 1))
        warp_key.append(channel.form())
    warps_a_head = _power_of_four(machine.model.head_dim // machine.lanes)
    for predicate in range(machine.predicates):
        true, false = fields.bits["guard_true"][predicate], fields.bits["guard_false"][predicate]
        columns = [
            Column(conjunction(nonzero, lane_key[lane]), [(met[lane], sign)], gate.form())
            for sign, gate in ((1, true), (-1, false))
            for lane in range(machine.lanes)
        ]
        chosen = conjunction(
            token.is_kind["last"], fields.flag("wr_pred"), *equals(fields.bits["dest_pred"], predicate)
        )
        write = chosen + as_form(reset) * (len(chosen.terms) + 2)
        for first in range(0, machine.warps, warps_a_head):
            warps = range(first, min(first + warps_a_head, machine.warps))
            threads = [(w, lane) for w in warps for lane in range(machine.lanes)]
            unused = warps_a_head - len(warps)
            circuit.heads.append(
                Head(
                    f"predicate.{predicate}.{first}",
                    circuit.current_unit,
                    [conjunction(warp_key[w], lane_key[lane]) for w, lane in threads]
                    + [reset.form()] * unused,
                    [state.at_warp[w].form() for w, _ in threads] + [Form({}, 0)] * unused,
                    write,
                    columns,
                    initial=(reset.form(), len(warps) + unused),
                    constant_where=lane_key[0],
                    rows_read=machine.lanes,
                )
            )


def _power_of_four(limit: int) -> int:
    """The largest power of four that is at most `limit`."""
    return 1 << (limit.bit_length() - 1) // 2 * 2
