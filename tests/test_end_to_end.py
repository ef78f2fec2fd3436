"""CUDA source to answer, in the weights.

The engine runs every launch on `default`, and each kernel's first on `seed` and `small`. The stock model
takes tenths of a second a token at the sizes of `default`: it runs one kernel there, and all of them on
`small`, float32 by decode. bfloat16, which a CPU without it emulates slowly, goes through prefill of the
whole sequence: the same argmax at every position is the same launch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from example_launches import FIRST, expected_buffers, launch_of
from launches import LAUNCHES
from launches import Launch as Example
from qgpu.backends.machine.description import DEFAULT, SEED, SMALL, MachineDescription
from qgpu.backends.machine.host import Launch, read_requests
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.run import generate, run_launch
from qgpu.runtime.compiled import CompiledEngine
from qgpu.runtime.launch import Outcome, run
from qgpu.runtime.stock import StockEngine

Checkpoint = Callable[[MachineDescription, str], Path]


(DOT,) = [example for example in FIRST if example.kernel == "dot"]


@pytest.fixture(scope="module")
def stock(checkpoint: Checkpoint) -> StockEngine:
    return StockEngine(checkpoint(SMALL, "float32"))


@pytest.fixture(scope="module")
def stock_bfloat16(checkpoint: Checkpoint) -> StockEngine:
    return StockEngine(checkpoint(SMALL, "bfloat16"), "bfloat16")


@pytest.fixture(scope="module")
def stock_of_default(checkpoint: Checkpoint) -> StockEngine:
    return StockEngine(checkpoint(DEFAULT, "float32"))


@pytest.fixture(scope="module", params=[SMALL, SEED], ids=lambda machine: machine.name)
def few_words(
    request: pytest.FixtureRequest, checkpoint: Checkpoint
) -> tuple[MachineDescription, CompiledEngine]:
    """A small machine, and the engine on its checkpoint."""
    return request.param, CompiledEngine(checkpoint(request.param, "float32"))


@pytest.fixture(scope="module")
def engine(checkpoint: Checkpoint) -> CompiledEngine:
    return CompiledEngine(checkpoint(DEFAULT, "float32"))


def whole_sequence(launch: Launch) -> tuple[list[int], list[int | None]]:
    """The tokens of a launch with its READ requests and answers, and what has to follow each of them."""
    machine = Machine(launch.machine)
    tokens = [*launch.prompt, *run_launch(launch).generated]
    following = [machine.step(token) for token in tokens]
    for region in (region for region in launch.buffers if region):
        for request, _ in read_requests(launch.machine, region):
            after = [machine.step(token) for token in request]
            answer = generate(machine, after[-1])
            tokens += [*request, *answer]
            following += [*after, *answer[1:], None]
    return tokens, following


def wrong_in_prefill(launch: Launch, stock: StockEngine) -> list[str]:
    """Where the argmax of a launch's whole sequence, given at once, is not what has to follow."""
    tokens, following = whole_sequence(launch)
    stock.begin()
    got = stock.prefill_argmax(tokens)
    ids = vocabulary(launch.machine)
    pairs = enumerate(zip(following, got, strict=True))
    return [f"{i}: {ids.name(g)}, not {ids.name(w)}" for i, (w, g) in pairs if w is not None and w != g]


def check_buffers(example: Example, outcome: Outcome) -> None:
    assert outcome.fault is None
    assert [buffer for buffer in outcome.buffers if buffer is not None] == expected_buffers(example)


@pytest.mark.parametrize("example", FIRST, ids=lambda example: example.id)
def test_kernels_run_in_the_stock_model(stock: StockEngine, example: Example) -> None:
    check_buffers(example, run(launch_of(example, SMALL), stock, check=True))


@pytest.mark.parametrize("example", FIRST[::3], ids=lambda example: example.id)
def test_kernels_run_in_the_stock_model_in_bfloat16(stock_bfloat16: StockEngine, example: Example) -> None:
    assert wrong_in_prefill(launch_of(example, SMALL), stock_bfloat16) == []


def test_the_default_machine_in_the_stock_model(stock_of_default: StockEngine) -> None:
    check_buffers(DOT, run(launch_of(DOT, DEFAULT), stock_of_default, check=True))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_default_machine_by_prefill_of_a_whole_trace(checkpoint: Checkpoint, dtype: str) -> None:
    stock = StockEngine(checkpoint(DEFAULT, dtype), dtype)
    assert wrong_in_prefill(launch_of(FIRST[0], DEFAULT), stock) == []


def test_the_dot_product_is_short(engine: CompiledEngine) -> None:
    """The project's bounds: 12 tokens, 240 layer passes, 22 layers."""
    generated = len(run_launch(launch_of(DOT, DEFAULT)).generated)
    assert generated <= 12
    assert engine.layers <= 22
    assert generated * engine.layers <= 240


@pytest.mark.parametrize("example", LAUNCHES, ids=lambda example: example.id)
def test_kernels_run_in_the_engine(engine: CompiledEngine, example: Example) -> None:
    check_buffers(example, run(launch_of(example, DEFAULT), engine, check=True))


@pytest.mark.parametrize("example", FIRST, ids=lambda example: example.id)
def test_kernels_run_on_machines_of_few_words(
    few_words: tuple[MachineDescription, CompiledEngine], example: Example
) -> None:
    machine, engine = few_words
    assert engine.layers <= 22
    check_buffers(example, run(launch_of(example, machine), engine, check=True))


def test_engine_and_stock_leave_the_same_state(stock: StockEngine, checkpoint: Checkpoint) -> None:
    """The same tokens and, in float32, the same recurrent state to the bit."""
    engine = CompiledEngine(checkpoint(SMALL, "float32"))
    tokens, _ = whole_sequence(launch_of(DOT, SMALL))
    stock.begin()
    assert [stock.feed([token]) for token in tokens] == [engine.feed([token]) for token in tokens]
    pairs = zip(stock.recurrent_states(), engine.recurrent_states(), strict=True)
    for wanted, got in pairs:
        np.testing.assert_array_equal(got, wanted.float().numpy().reshape(got.shape))
