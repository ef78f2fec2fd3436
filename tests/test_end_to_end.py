"""CUDA source to answer, inside the stock model: every example kernel on the machine `default`.

float32 by decode, every token checked as it comes. bfloat16, which a CPU without it emulates slowly, by
prefill of the whole sequence: the same argmax at every position is the same launch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from example_launches import FIRST, expected_buffers, launch_of
from launches import LAUNCHES
from launches import Launch as Example
from qgpu.backends.machine.description import DEFAULT, MachineDescription
from qgpu.backends.machine.host import Launch, read_requests
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.run import generate, run_launch
from qgpu.runtime.launch import run
from qgpu.runtime.compiled import CompiledEngine
from qgpu.runtime.stock import StockEngine

Checkpoint = Callable[[MachineDescription, str], Path]


@pytest.fixture(scope="module")
def stock(checkpoint: Checkpoint) -> StockEngine:
    return StockEngine(checkpoint(DEFAULT, "float32"))


@pytest.fixture(scope="module")
def stock_bfloat16(checkpoint: Checkpoint) -> StockEngine:
    return StockEngine(checkpoint(DEFAULT, "bfloat16"), "bfloat16")


@pytest.fixture(scope="module")
def sparse(checkpoint: Checkpoint) -> CompiledEngine:
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


@pytest.mark.parametrize("example", FIRST, ids=lambda example: example.id)
def test_kernels_run_in_the_stock_model(stock: StockEngine, example: Example) -> None:
    outcome = run(launch_of(example, DEFAULT), stock, check=True)
    assert outcome.fault is None
    assert [buffer for buffer in outcome.buffers if buffer is not None] == expected_buffers(example)


@pytest.mark.parametrize("example", FIRST, ids=lambda example: example.id)
def test_kernels_run_in_the_stock_model_in_bfloat16(stock_bfloat16: StockEngine, example: Example) -> None:
    assert wrong_in_prefill(launch_of(example, DEFAULT), stock_bfloat16) == []


def test_a_launch_by_prefill_of_its_whole_trace(stock: StockEngine) -> None:
    assert wrong_in_prefill(launch_of(FIRST[0], DEFAULT), stock) == []


def test_the_dot_product_is_short(stock: StockEngine) -> None:
    (dot,) = [example for example in FIRST if example.kernel == "dot"]
    assert len(run_launch(launch_of(dot, DEFAULT)).generated) <= 24
    assert stock.layers <= 24


@pytest.mark.parametrize("example", LAUNCHES, ids=lambda example: example.id)
def test_kernels_run_in_the_sparse_runner(sparse: CompiledEngine, example: Example) -> None:
    outcome = run(launch_of(example, DEFAULT), sparse, check=True)
    assert [buffer for buffer in outcome.buffers if buffer is not None] == expected_buffers(example)


def test_sparse_and_stock_leave_the_same_state(stock: StockEngine, sparse: CompiledEngine) -> None:
    """The same tokens and, in float32, the same recurrent state to the bit."""
    (dot,) = [example for example in FIRST if example.kernel == "dot"]
    tokens, _ = whole_sequence(launch_of(dot, DEFAULT))
    stock.begin()
    sparse.begin()
    assert [stock.feed([token]) for token in tokens] == [sparse.feed([token]) for token in tokens]
    pairs = zip(stock.recurrent_states(), sparse.recurrent_states(), strict=True)
    for wanted, got in pairs:
        np.testing.assert_array_equal(got, wanted.float().numpy().reshape(got.shape))
