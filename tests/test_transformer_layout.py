"""The scheduler and the allocator: order, capacity, and no two live channels in one place."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict

import pytest

from qgpu.backends.machine.block import BOUNDS
from qgpu.backends.machine.description import DEFAULT, LARGE, SEED, SMALL, MachineDescription, ModelShape
from qgpu.backends.transformer.allocate import AllocationError, allocate, live_ranges
from qgpu.backends.transformer.circuit import Circuit, CounterHead, Head, Neuron
from qgpu.backends.transformer.emit import Layout, lay_out, tensors
from qgpu.backends.transformer.norms import Magnitudes, NormError, constant_squares
from qgpu.backends.transformer.numerics import (
    absorbs,
    constant_amplitudes,
    row_constants,
    scale_of,
    split_bias,
)
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


@pytest.mark.parametrize(
    ("hidden", "data", "amplitudes"),
    [
        (512, 60_000, (16, 16)),
        (1024, 60_000, (16, 16, 16, 16)),
        (1152, 0, (16, 16, 24, 8)),
        (1152, 30_000, (16, 16, 24, 8)),
        (1168, 60_000, (16, 16, 20, 16)),
        (2160, 60_000, (16, 16, 26, 18, 18, 18)),
        (2192, 100_000, (32, 32, 12)),
    ],
)
def test_constants_are_chosen_for_the_data(hidden: int, data: float, amplitudes: tuple[int, ...]) -> None:
    assert constant_amplitudes(hidden, data) == amplitudes
    assert absorbs(constant_squares(amplitudes), data)


@pytest.mark.parametrize(("hidden", "data"), [(960, 20_000), (1024, 70_000), (1152, 40_000)])
def test_sizes_whose_constants_are_too_small(hidden: int, data: float) -> None:
    with pytest.raises(ValueError, match=f"no constants for hidden size {hidden}"):
        constant_amplitudes(hidden, data)


@pytest.mark.parametrize(
    ("amplitudes", "limit"), [((16, 16, 24, 8), 2**15), ((16, 16), 2**16), ((32, 32, 8), 2**17)]
)
def test_the_norm_of_stock_layers_shows_what_is_not_absorbed(amplitudes: tuple[int, ...], limit: int) -> None:
    """As torch sums the squares: below the limit the norm of a constant is exactly 1, far above it not."""
    import torch
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5RMSNorm

    hidden = sum(a * a for a in amplitudes)
    norm = Qwen3_5RMSNorm(hidden)
    norm.weight.data.fill_(1 / amplitudes[0] - 1)
    stream = torch.zeros(2, hidden)
    stream[:, : len(amplitudes)] = torch.tensor(amplitudes) * 2.0**16
    places = slice(len(amplitudes), len(amplitudes) + 64)
    stream[:, places] = torch.tensor([[(limit * 0.99 / 64) ** 0.5], [(limit * 1024 / 64) ** 0.5]])
    assert norm(stream)[0, 0] == 1
    assert norm(stream)[1, 0] != 1


def counting(maximum: int, channels: int) -> Circuit:
    """A circuit that holds so many counts at once, each up to `maximum`."""
    circuit = Circuit(1)
    counts = circuit.bus("count", channels, maximum)
    for count in counts:
        circuit.neuron(maximum, (count, 1))
    circuit.readout.logits[0] = sum((c.form() for c in counts), start=counts[0].form() * 0)
    return circuit


def test_data_whose_squares_would_show_is_refused() -> None:
    shape = ModelShape(hidden=512)
    assert lay_out(counting(32, 63), shape).amplitudes == (16, 16)
    with pytest.raises(
        NormError, match=r"may sum to 65,536, .* size of 512 .* below 65,536; those of 2048 are"
    ):
        lay_out(counting(32, 64), shape)
    with pytest.raises(NormError, match=r"may sum to 40,960, .* size of 576 .* below 32,768"):
        lay_out(counting(32, 40), ModelShape(hidden=576))


def test_nothing_is_shrunk_where_it_need_not_be(layout: Layout) -> None:
    assert {channel.shift for channel in layout.circuit.channels} == {0}
    squares = Magnitudes(layout.circuit, layout.schedule).squares(layout.allocation)
    assert absorbs(constant_squares(layout.amplitudes), squares)


def test_counts_of_memories_are_shrunk_where_they_have_to_be() -> None:
    """A machine with 13 predicates and 32 lanes counts up to 13 on an offset of 32, 32 times."""
    machine = dataclasses.replace(LARGE, register_words=1024, rom_blocks=64, memory_words=128)
    circuit = build_processor(machine)
    layout = lay_out(circuit, machine.model)
    assert {channel.shift for channel in circuit.channels} == {0, 4}
    squares = Magnitudes(circuit, layout.schedule).squares(layout.allocation)
    assert absorbs(constant_squares(layout.amplitudes), squares)


@pytest.mark.parametrize("maximum", [1, 2, 7, 8, 13])
def test_a_shift_changes_no_rounding(maximum: int) -> None:
    circuit = Circuit(1)
    channel = circuit.channel("c", maximum, "memory")
    before = scale_of(channel, "bfloat16")
    circuit.shrink_counts()
    after = scale_of(channel, "bfloat16")
    assert after.offset == 2
    assert after.offset / after.unit == before.offset / before.unit
    assert 2 + after.unit * maximum <= 4


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
