"""The machine as circuits and as weights against the reference: random blocks over random state."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from qgpu.backends.machine.block import OPS
from qgpu.backends.machine.description import DEFAULT, SEED, SMALL, MachineDescription
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.machine import Machine
from qgpu.backends.transformer.allocate import live_ranges
from qgpu.backends.transformer.emit import lay_out
from qgpu.backends.transformer.evaluate import Evaluator
from qgpu.backends.transformer.norms import Magnitudes
from qgpu.backends.transformer.numerics import scale_of
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.schedule import outputs_of, schedule
from qgpu.backends.transformer.units.alu import UNITS
from random_blocks import random_stream

KINDS = ("last", "final", "more", "lane", "warp", "exec", "exit", "fault")
"""Kinds of tokens that the streams have to show."""

Checkpoint = Callable[[MachineDescription, str], Path]


def expected_tokens(machine: MachineDescription, tokens: list[int]) -> list[int | None]:
    """What the reference says after each token; None where it leaves that open."""
    reference = Machine(machine)
    return [reference.step(token) for token in tokens]


def differences(expected: list[int | None], got: list[int], machine: MachineDescription) -> list[str]:
    ids = vocabulary(machine)
    pairs = enumerate(zip(expected, got, strict=True))
    return [f"{i}: {ids.name(w)}, not {ids.name(g)}" for i, (w, g) in pairs if w is not None and w != g]


def test_each_operation_has_a_circuit() -> None:
    assert list(UNITS) == list(OPS)


@pytest.mark.parametrize(
    ("machine", "seeds", "blocks"),
    [(SMALL, range(2), 40), (SEED, range(3, 4), 30), (DEFAULT, range(25, 26), 10)],
)
def test_circuits_equal_the_reference(machine: MachineDescription, seeds: range, blocks: int) -> None:
    circuit = build_processor(machine)
    plan = schedule(circuit, machine.model)
    kinds: Counter[str] = Counter()
    for seed in seeds:
        tokens = random_stream(random.Random(seed), machine, blocks)
        expected = expected_tokens(machine, tokens)
        evaluator = Evaluator(circuit, plan)
        got = [evaluator.step(token) for token in tokens]
        assert differences(expected, got, machine) == [], f"seed {seed}"
        kinds.update(vocabulary(machine).token(token).kind for token in expected if token is not None)
    assert min(kinds[kind] for kind in KINDS) > 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_live_channel_of_the_model_equals_the_circuit(checkpoint: Checkpoint, dtype: str) -> None:
    """Layer by layer, in the residual stream of the stock model: offset + unit * value, to the bit."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = checkpoint(SMALL, dtype)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    layout = lay_out(build_processor(SMALL), SMALL.model)
    tokens = random_stream(random.Random(5), SMALL, 12)[:300]
    with torch.no_grad():
        hidden = model(torch.tensor([tokens]), output_hidden_states=True).hidden_states
    streams = torch.stack([layer[0].float() for layer in hidden[:-1]]).numpy()
    bound = Magnitudes(layout.circuit, layout.schedule).squares(layout.allocation)
    assert (streams[..., len(layout.amplitudes) :] ** 2).sum(axis=-1).max() <= bound
    complete = dict.fromkeys(layout.circuit.channels, -1)
    for node, slot in layout.schedule.slot_of.items():
        complete |= {channel: max(complete[channel], slot) for channel in outputs_of(node)}
    ranges = live_ranges(layout.circuit, layout.schedule)
    evaluator = Evaluator(layout.circuit, layout.schedule)
    compared = 0
    for position, token in enumerate(tokens):
        evaluator.step(token)
        for channel, place in layout.allocation.place.items():
            scale = scale_of(channel, dtype)
            wanted = scale.offset + scale.unit * evaluator.value_of(channel.name)
            layers = range(complete[channel] // 2 + 1, ranges[channel].last // 2 + 1)
            for layer in layers:
                if layer < layout.layers:
                    assert streams[layer, position, place] == wanted, (
                        f"{channel}, layer {layer}, token {position}"
                    )
                    compared += 1
    assert compared > 100_000


@pytest.mark.parametrize(
    ("machine", "dtype", "blocks"),
    [(SMALL, "float32", 60), (SMALL, "bfloat16", 25), (DEFAULT, "float32", 25)],
    ids=["small-float32", "small-bfloat16", "default-float32"],
)
def test_the_stock_model_equals_the_reference(
    checkpoint: Checkpoint, machine: MachineDescription, dtype: str, blocks: int
) -> None:
    from qgpu.runtime.stock import StockEngine

    tokens = random_stream(random.Random(9), machine, blocks)
    engine = StockEngine(checkpoint(machine, dtype), dtype)
    got = engine.prefill_argmax(tokens)
    assert differences(expected_tokens(machine, tokens), got, machine) == []
