"""Predicates and the choice of the next lane: guards, the first active lane, the next warp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.backends.machine.block import BOUNDS
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    Form,
    FormLike,
    Head,
    as_form,
    at_least,
    conjunction,
    equals,
    exactly,
    matches,
    number,
    total,
)
from qgpu.backends.transformer.units.fetch import CONSTANT_COLUMNS, Fields
from qgpu.backends.transformer.units.incoming import Incoming
from qgpu.backends.transformer.units.state import State

WARPS_A_HEAD = 16
"""Warps whose predicates lie in one head: a power of four, see `_keep_guards`."""


@dataclass(frozen=True)
class NextLane:
    """Channels that say where the block goes on.

    Attributes:
        here: the current lane is active.
        single: exactly one lane of the warp is left, from the current one on.
        none: none is.
        first: one-hot first lane that is left.
        warp_left: the block goes on in another warp.
        at_warp: one-hot current warp.
    """

    here: Channel
    single: Channel
    none: Channel
    first: list[Channel]
    warp_left: Channel
    at_warp: list[Channel]


def choose_lane(
    circuit: Circuit, machine: MachineDescription, token: Incoming, state: State, fields: Fields
) -> NextLane:
    """Build the guards and the selection of the next active lane."""
    circuit.unit("predicates")
    met = [
        circuit.channel(f"guards_met.{lane}", machine.predicates, "memory") for lane in range(machine.lanes)
    ]
    circuit.unit("bounds of predicates")
    bounds = [_decode_bound(circuit, machine, token, state, fields, predicate) for predicate in range(BOUNDS)]
    everywhere = total(
        _guard_by_bound(circuit, bound, fields, met, predicate) for predicate, bound in enumerate(bounds)
    )
    held = [_held(circuit, bound) for bound in bounds]
    circuit.unit("predicates")
    _keep_guards(circuit, machine, token, state, fields, held, met)
    circuit.unit("lane selection")
    wanted = total(fields.bits["guard_true"])
    visit, scalar = fields.flag("visit"), as_form(fields.flag("scalar"))
    left = []
    for lane in range(machine.lanes):
        only_first = [1 - scalar] if lane else []
        ahead = conjunction(visit, 1 - state.passed[lane].form(), *only_first)
        left.append(circuit.channel(f"lane_left.{lane}"))
        circuit.neuron(ahead + met[lane] + everywhere - wanted, (left[-1], 1))
    here, single, none = (circuit.channel(f"lanes.{name}") for name in ("here", "single", "none"))
    for lane in range(machine.lanes):
        circuit.add_and(here, left[lane], state.at_lane[lane])
    circuit.add_function(total(left), machine.lanes, [(single, exactly(1)), (none, exactly(0))])
    first = [
        circuit.both(f"first_lane.{lane}", left[lane].form() - total(left[:lane]))
        for lane in range(machine.lanes)
    ]
    return NextLane(here, single, none, first, _warp_left(circuit, state, fields), state.at_warp)


def _warp_left(circuit: Circuit, state: State, fields: Fields) -> Channel:
    more = circuit.channel("more_warps")
    distance = number(state.last_warp) - number(state.warp)
    circuit.neuron(distance, (more, 1))
    circuit.neuron(distance - 1, (more, -1))
    return circuit.both("warp_left", fields.flag("all_warps"), more)


@dataclass(frozen=True)
class _Bound:
    """A predicate's bound beside the current warp.

    Attributes:
        name: of its channels.
        sign, beyond: it is negative; it lies above the threads of every warp.
        over, there: its warp is above the current one, or is the current one.
        lanes: for each lane but the last, whether it lies below the bound's lane.
    """

    name: str
    sign: Form
    beyond: Channel
    over: Channel
    there: Channel
    lanes: list[Channel]

    def whole(self) -> list[tuple[FormLike, ...]]:
        """Conjunctions, at most one of which holds, that the whole warp is below the bound."""
        return [(1 - self.sign, self.beyond), (1 - self.sign, 1 - self.beyond.form(), self.over)]

    def partly(self, lane: int) -> tuple[FormLike, ...]:
        """The conjunction that a lane is below the bound and a later one is not."""
        return (1 - self.sign, 1 - self.beyond.form(), self.there, self.lanes[lane])


def _decode_bound(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    state: State,
    fields: Fields,
    predicate: int,
) -> _Bound:
    """Compare a bound with the current warp and with each lane.

    A thread is below the bound if its warp is below the bound's upper bits, or is there and the lane is below
    the lower ones.
    """
    name, lane_bits = f"bound.{predicate}", (machine.lanes - 1).bit_length()
    bits = _keep_bound(circuit, token, fields, predicate)
    warp_bits = len(state.warp)
    upper = bits[lane_bits : lane_bits + warp_bits]
    beyond, over, there = (circuit.channel(f"{name}.{part}") for part in ("beyond", "over", "there"))
    above = bits[lane_bits + warp_bits : 31]
    circuit.add_function(total(above), len(above), [(beyond, at_least(1))])
    lanes = circuit.bus(f"{name}.lane", machine.lanes - 1)
    below = [(output, at_least(lane + 1)) for lane, output in enumerate(lanes)]
    circuit.add_function(number(bits[:lane_bits]), machine.lanes - 1, below)
    span = 1 << warp_bits
    distance = number(upper) - number(state.warp) + span
    circuit.add_function(distance, 2 * span, [(over, at_least(span + 1)), (there, exactly(span))])
    return _Bound(name, bits[31].form(), beyond, over, there, lanes)


def _guard_by_bound(
    circuit: Circuit, bound: _Bound, fields: Fields, met: Sequence[Channel], predicate: int
) -> Form:
    """Count the predicate where the bound makes it hold; return what it counts in every lane of the warp."""
    everywhere: list[Form] = []
    for field, count in (("guard_true", 1), ("guard_false", -1)):
        guard = fields.bits[field][predicate]
        whole = circuit.channel(f"{bound.name}.{field}")
        for literals in bound.whole():
            circuit.add_and(whole, guard, *literals)
        everywhere.append(whole.form() * count)
        for lane in range(len(bound.lanes)):
            circuit.add_and(met[lane], guard, *bound.partly(lane), coefficient=count)
    return total(everywhere)


def _held(circuit: Circuit, bound: _Bound) -> list[Channel]:
    """For each lane, whether the bound makes the predicate hold: a stored one is then not counted as well."""
    held = circuit.bus(f"{bound.name}.held", len(bound.lanes) + 1)
    for literals in bound.whole():
        circuit.neuron(conjunction(*literals), *((output, 1) for output in held))
    for lane, output in enumerate(held[:-1]):
        circuit.add_and(output, *bound.partly(lane))
    return held


def _keep_bound(circuit: Circuit, token: Incoming, fields: Fields, predicate: int) -> list[Channel]:
    bound = circuit.bus(f"bound.{predicate}", 32, kind="memory")
    columns = [Column(bit.form(), [(output, 1)]) for bit, output in zip(token.value, bound, strict=True)]
    written = conjunction(fields.flag("wr_bound"), *equals(fields.bits["dest_pred"], predicate))
    always, value = Form({}, 1), token.is_kind["value"].form()
    circuit.heads.append(
        Head(f"bound.{predicate}", circuit.current_unit, [written], [always], value, columns, key_tap=1)
    )
    return bound


def _keep_guards(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    state: State,
    fields: Fields,
    held: Sequence[Sequence[Channel]],
    met: list[Channel],
) -> None:
    """Add to `met[l]`, for each lane of the current warp, how many predicates of `guard_true` are 1 in it.

    Those of `guard_false` that are 1 count against it: the guard holds where `met` is the number of the
    former. Predicate 0 is not stored; one that is `held` by its bound is counted already.

    A row is a thread; a column is a lane, a predicate and a guard. One query reads the rows of a warp: each
    lane's bits stand in columns of their own, and the row of the head's first lane alone carries the
    constant, which the token after RESET writes to all of those rows at once (a power of four of them,
    unused rows included: the key is then 1 / 2^n in each).
    """
    keys = _guard_keys(circuit, machine, token, state, fields)
    stored = range(1, machine.predicates)
    width = machine.model.head_dim - CONSTANT_COLUMNS
    lanes_a_head = _power_of_two(min(width // (2 * len(stored)), machine.model.key_dim // WARPS_A_HEAD))
    value = token.is_kind["value"].form()
    for low in range(0, machine.lanes, lanes_a_head):
        lanes = range(low, min(low + lanes_a_head, machine.lanes))
        constant = _either(circuit, f"guards.constant.{low}", keys.lane_before[low], token.after_reset)
        columns = [
            Column(
                conjunction(value, token.argument[p], keys.lane_before[lane]),
                [(met[lane], sign)],
                conjunction(gate[p], *(1 - channels[lane].form() for channels in held[p : p + 1])),
            )
            for sign, gate in ((1, fields.bits["guard_true"]), (-1, fields.bits["guard_false"]))
            for p in stored
            for lane in lanes
        ]
        for base in range(0, machine.warps, WARPS_A_HEAD):
            warps = range(base, min(base + WARPS_A_HEAD, machine.warps))
            unused = WARPS_A_HEAD - len(warps)
            circuit.heads.append(
                Head(
                    f"guards.{low}.{base}",
                    circuit.current_unit,
                    [keys.row(w, lane, lane == low) for w in warps for lane in lanes]
                    + [token.is_kind["reset"].form()] * unused,
                    [state.at_warp[w].form() for w in warps for _ in lanes] + [Form({}, 0)] * unused,
                    value + token.after_reset,
                    columns,
                    key_tap=1,
                    initial=(token.after_reset.form(), WARPS_A_HEAD),
                    constant_where=constant.form(),
                    rows_read=len(lanes),
                )
            )


@dataclass(frozen=True)
class _GuardKeys:
    """What the keys of the stored predicates are made of.

    Attributes:
        lane_before: one-hot lane of the pass before.
        writes, at_warp, at_lane: whether the block writes a predicate, one-hot warp and lane; all 1 at RESET.
        plain_lane: one-hot lane, none at RESET.
    """

    lane_before: list[Channel]
    writes: Channel
    at_warp: list[Channel]
    at_lane: list[Channel]
    plain_lane: list[Form]

    def row(self, warp: int, lane: int, initialised: bool) -> Form:
        """The key of a thread's row; RESET writes those that are `initialised`."""
        at_lane = self.at_lane[lane] if initialised else self.plain_lane[lane]
        return conjunction(self.writes, self.at_warp[warp], at_lane)


def _guard_keys(
    circuit: Circuit, machine: MachineDescription, token: Incoming, state: State, fields: Fields
) -> _GuardKeys:
    reset = token.is_kind["reset"]
    return _GuardKeys(
        _lane_before(circuit, machine, state),
        _either(circuit, "guards.writes", fields.flag("wr_pred"), reset),
        [_either(circuit, f"guards.warp.{w}", at, reset) for w, at in enumerate(state.at_warp)],
        [_either(circuit, f"guards.lane.{lane}", at, reset) for lane, at in enumerate(state.at_lane)],
        [at.form() - reset for at in state.at_lane],
    )


def _either(circuit: Circuit, name: str, left: Channel, right: Channel) -> Channel:
    """1 where one of two bits is."""
    output = circuit.channel(name)
    circuit.neuron(left, (output, 1))
    circuit.neuron(right.form() - left, (output, 1))
    return output


def _lane_before(circuit: Circuit, machine: MachineDescription, state: State) -> list[Channel]:
    """One-hot lane of the pass before."""
    before = circuit.bus("lane_before", machine.lanes, kind="memory")
    columns = [
        Column(at.form(), [(output, 1)], tap=1) for at, output in zip(state.at_lane, before, strict=True)
    ]
    always = Form({}, 1)
    circuit.heads.append(Head("lane-before", circuit.current_unit, [always], [always], always, columns))
    return before


def read_own_predicates(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    state: State,
    fields: Fields,
    written: Sequence[Channel],
    outputs: Sequence[Channel],
) -> None:
    """Add the current lane's stored predicates to `outputs` where the block writes another.

    Args:
        written: one-hot predicate that the block writes.
        outputs: by predicate.
    """
    circuit.unit("own predicates")
    writes = fields.flag("wr_pred")
    columns = [
        Column(token.argument[p].form(), [(outputs[p], 1)], conjunction(writes, 1 - written[p].form()))
        for p in range(1, machine.predicates)
    ]
    bits = [*state.lane, *state.warp]
    for first in range(0, machine.threads, machine.model.key_dim):
        threads = range(first, min(first + machine.model.key_dim, machine.threads))
        keys = matches(bits, threads, writes)
        value = token.is_kind["value"].form()
        circuit.heads.append(
            Head(f"own.{first}", circuit.current_unit, keys, keys, value, columns, key_tap=1, file="own")
        )


def _power_of_two(limit: int) -> int:
    """The largest power of two that is at most `limit`."""
    return 1 << limit.bit_length() - 1
