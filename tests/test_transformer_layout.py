"""The scheduler and the allocator: order, capacity, and no two live channels in one place."""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest

from qgpu.backends.machine.block import BOUNDS
from qgpu.backends.machine.description import DEFAULT, SEED, SMALL, MachineDescription, ModelShape
from qgpu.backends.transformer.allocate import AllocationError, allocate, live_ranges
from qgpu.backends.transformer.circuit import Circuit, CounterHead, Head, Neuron
from qgpu.backends.transformer.emit import Layout, lay_out, tensors
from qgpu.backends.transformer.numerics import constant_amplitudes, row_constants, split_bias
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.schedule import ScheduleError, inputs_of, outputs_of, schedule

MACHINES = [DEFAULT, SMALL]


@pytest.fixture(scope="module", params=MACHINES, ids=lambda machine: machine.name)
def layout(request: pytest.FixtureRequest) -> Layout:
    return lay_out(build_processor(request.param), request.param.model)


def test_readers_come_after_all_writers(layout: Layout) -> None:
    slots = layout.schedule.slot_of
    assert len(slots) == len(layout.circuit.neurons) + len(layout.circuit.heads)
    written: dict[object, int] = defaultdict(lambda: -1)
    for node, slot in slots.items():
        assert slot % 2 == isinstance(node, Neuron)
        for channel in outputs_of(node):
            written[channel] = max(written[channel], slot)
    for node, slot in slots.items():
        assert all(written[channel] < slot for channel in inputs_of(node))


def test_layers_hold_what_they_are_given(layout: Layout) -> None:
    plan = layout.schedule
    assert plan.attention_layer is not None
    assert plan.heads[plan.attention_layer] == []
    assert max(map(len, plan.heads)) <= layout.shape.heads
    assert max(map(len, plan.neurons)) <= layout.intermediate <= layout.shape.intermediate
    assert plan.critical_path <= 2 * plan.layers
    columns = layout.shape.head_dim - row_constants(layout.shape.head_dim)[0]
    for head in layout.circuit.heads:
        if isinstance(head, Head):
            assert len(head.keys) <= layout.shape.key_dim
            assert len(head.columns) <= columns


def test_no_two_live_channels_share_a_place(layout: Layout) -> None:
    ranges = live_ranges(layout.circuit, layout.schedule)
    places = defaultdict(list)
    for channel, place in layout.allocation.place.items():
        places[place].append(ranges[channel])
    assert min(places) >= len(layout.amplitudes)
    assert max(places) < layout.shape.hidden
    erased = {(e.place, e.slot) for e in layout.allocation.erasures}
    for place, lives in places.items():
        ordered = sorted(lives, key=lambda live: live.first)
        for before, after in itertools.pairwise(ordered):
            slot = before.last | 1
            assert before.last <= slot <= after.first
            assert (place, slot) in erased
    assert layout.allocation.peak <= layout.allocation.places


@pytest.mark.parametrize("layout", [DEFAULT], ids=["default"], indirect=True)
def test_the_default_machine_is_within_its_layers(layout: Layout) -> None:
    """The project's bound: at most 22 layers, so that the machine fits before or beside a small Qwen3.5."""
    assert layout.layers <= 22
    assert (layout.shape.heads, layout.shape.head_dim) == (16, 128)
    assert layout.intermediate <= 3584


@pytest.mark.parametrize("layout", [SMALL], ids=["small"], indirect=True)
def test_a_layout_is_the_same_in_every_build(layout: Layout) -> None:
    second = lay_out(build_processor(SMALL), SMALL.model)
    for (name, a), (other, b) in zip(tensors(layout, "float32"), tensors(second, "float32"), strict=True):
        assert name == other
        assert (a == b).all()


def chain(length: int) -> Circuit:
    """A circuit of neurons, each reading the one before."""
    circuit = Circuit(1)
    previous = circuit.channel("c.0")
    circuit.neuron(1, (previous, 1))
    for index in range(1, length):
        channel = circuit.channel(f"c.{index}")
        circuit.neuron(previous, (channel, 1))
        previous = channel
    circuit.readout.logits[0] = previous.form()
    return circuit


def test_a_chain_takes_a_layer_a_neuron() -> None:
    plan = schedule(chain(5), ModelShape())
    assert plan.critical_path == 10
    assert [len(neurons) for neurons in plan.neurons] == [1, 1, 1, 1, 1]


def test_neurons_spread_over_layers_that_wait_anyway() -> None:
    circuit = chain(5)
    for index in range(10):
        circuit.neuron(1, (circuit.channel(f"free.{index}"), 1))
    assert max(len(neurons) for neurons in schedule(circuit, ModelShape()).neurons) == 3


def test_a_cycle_is_refused() -> None:
    circuit = Circuit(1)
    a, b = circuit.channel("a"), circuit.channel("b")
    circuit.neuron(a, (b, 1))
    circuit.neuron(b, (a, 1))
    with pytest.raises(ScheduleError, match="cycle"):
        schedule(circuit, ModelShape())


def test_too_many_live_channels_are_refused_with_their_number() -> None:
    circuit = Circuit(1)
    channels = circuit.bus("c", 20)
    for channel in channels:
        circuit.neuron(1, (channel, 1))
    circuit.readout.logits[0] = sum((c.form() for c in channels), start=channels[0].form() * 0)
    plan = schedule(circuit, ModelShape())
    assert allocate(circuit, plan, 2, 22).places == 20
    with pytest.raises(AllocationError, match="has 19 places for channels; 20 are alive at once"):
        allocate(circuit, plan, 2, 21)


def test_places_are_reused_where_they_are_scarce() -> None:
    """A place that is emptied in a slot is filled in it: a chain needs one place at once."""
    circuit = chain(30)
    allocation = allocate(circuit, schedule(circuit, ModelShape()), 2, 5)
    assert (allocation.places, allocation.peak) == (3, 1)
    assert len(allocation.erasures) == 27


@pytest.mark.parametrize("hidden", [64, 128, 256, 320, 512, 768, 1024, 1152, 2048, 2176, 2560])
def test_constants_make_the_mean_square_a_power_of_four(hidden: int) -> None:
    amplitudes = constant_amplitudes(hidden)
    assert sum(a * a for a in amplitudes) == hidden
    assert amplitudes[0] == amplitudes[1]
    assert amplitudes[0].bit_count() == 1
    assert max(amplitudes) < 256


@pytest.mark.parametrize(("head_dim", "columns", "shift"), [(64, 1, 3), (128, 2, 3), (256, 1, 4)])
def test_row_constants_make_the_norm_a_power_of_two(head_dim: int, columns: int, shift: int) -> None:
    assert row_constants(head_dim) == (columns, shift)
    assert (2**shift) ** 2 * columns == head_dim


@pytest.mark.parametrize("bias", [0.0, 1.0, -8416.0, 2.0**30 + 128, 255 * 255.0, -(2.0**-3)])
def test_biases_split_into_parts_of_eight_bits(bias: float) -> None:
    high, low = split_bias(bias)
    assert high + low == bias
    for part in (high, low):
        assert int(part * 8 if part % 1 else part) >> 8 << 8 == part or abs(part) < 256 or part % 32 == 0


@pytest.mark.parametrize("machine", [SMALL, SEED], ids=lambda machine: machine.name)
def test_every_operand_and_unit_is_part_of_the_machine(machine: MachineDescription) -> None:
    circuit = build_processor(machine)
    memories = [h for h in circuit.heads if isinstance(h, Head)]
    uniforms, accumulators = machine.uniform_registers, machine.accumulator_rows * machine.lanes
    rows = {
        **dict.fromkeys(("memory", "second memory"), machine.memory_words),
        **dict.fromkeys(("port A", "port B"), machine.register_words + uniforms),
        **dict.fromkeys(("port C", "port E"), uniforms),
        "accumulator port": min(machine.register_words, accumulators),
        "own predicates": machine.threads,
        "bounds of predicates": BOUNDS,
    }
    for unit, expected in rows.items():
        assert sum(len(h.keys) for h in memories if h.unit == unit) == expected, unit
    counters = [h.name for h in circuit.heads if isinstance(h, CounterHead)]
    assert counters == ["run-counter", "lane-counter"]
