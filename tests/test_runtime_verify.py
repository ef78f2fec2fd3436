"""`--backend verify`: the stock model confirms the tokens, or the first it does not is named."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import machine_kernels
from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.machine.host import Launch, build_launch
from qgpu.backends.machine.qbin import save_program
from qgpu.backends.machine.tokens import vocabulary
from qgpu.runtime.cli import main
from qgpu.runtime.launch import DifferenceError
from qgpu.runtime.states import COUNTER_TOLERANCE, Head, StateDifference, compare_states
from qgpu.runtime.stock import StockEngine
from qgpu.runtime.verify import Verifier, open_verifier, verify

Checkpoint = Callable[[MachineDescription, str], Path]


@pytest.fixture(scope="module")
def small(checkpoint: Checkpoint) -> Path:
    return checkpoint(SMALL, "float32")


@pytest.fixture(scope="module")
def verifier(small: Path) -> Verifier:
    return open_verifier(SMALL, small)


def vecadd(n: int = 7) -> Launch:
    a, b = (struct.pack("<7i", *(scale * i - 9 for i in range(7))) for scale in (1, 100_000))
    return build_launch(SMALL, machine_kernels.vecadd(), (2, 1, 1), (4, 1, 1), [a, b, bytes(28), n])


@pytest.mark.parametrize("chunk", [64, 100])
def test_a_launch_is_confirmed(verifier: Verifier, chunk: int) -> None:
    launch = vecadd()
    found = verify(launch, dataclasses.replace(verifier, chunk=chunk))
    assert found.outcome.buffers[2] == struct.pack("<7i", *(100_001 * i - 18 for i in range(7)))
    assert found.outcome.checked and found.outcome.layers == verifier.model.layers
    words = sum(-(-region.size // 4) for region in launch.buffers if region)
    assert found.answers > len(found.outcome.generated) + words
    assert found.state is not None and found.state.counters
    assert set(found.state.differing) <= set(found.state.counters)


def test_a_fault_is_confirmed(verifier: Verifier) -> None:
    outcome = verify(vecadd(n=9), verifier).outcome
    assert outcome.fault is not None and outcome.fault.kind == "out-of-bounds"


def test_bfloat16_has_no_state_to_compare(checkpoint: Checkpoint) -> None:
    verifier = open_verifier(SMALL, checkpoint(SMALL, "bfloat16"), "bfloat16")
    found = verify(vecadd(), verifier)
    assert found.outcome.checked and found.state is None


class Lying:
    """A stock model that gives another token at one place of the sequence."""

    def __init__(self, model: StockEngine, place: int, token: int) -> None:
        self._model, self._place, self._token = model, place, token
        self.layers = model.layers

    def begin(self) -> None:
        self._model.begin()
        self._taken = 0

    def prefill_argmax(self, tokens: Sequence[int], chunk: int) -> list[int]:
        following = self._model.prefill_argmax(tokens, chunk)
        if self._taken <= self._place < self._taken + len(tokens):
            following[self._place - self._taken] = self._token
        self._taken += len(tokens)
        return following


def refused(verifier: Verifier, place: int) -> str:
    wrong = Lying(verifier.model, place, vocabulary(SMALL).id("last", 77))
    with pytest.raises(DifferenceError) as caught:
        verify(vecadd(), dataclasses.replace(verifier, model=wrong))  # pyright: ignore[reportArgumentType]
    return str(caught.value)


def test_the_first_token_that_is_not_the_models_is_named(verifier: Verifier) -> None:
    prompt, ids = len(vecadd().prompt), vocabulary(SMALL)
    generated = verify(vecadd(), verifier).outcome.generated
    for count in (0, 5, len(generated) - 1):
        named = ids.name(generated[count])
        message = (
            f"generated token {count}: the model's argmax is <last:77>, the reference's token is {named}: "
        )
        assert refused(verifier, prompt + count - 1).startswith(message)
    answer = refused(verifier, prompt + len(generated) + 10)
    assert answer.startswith("answer to READ, ") and "the model's argmax is <last:77>" in answer


def test_what_the_model_says_of_the_prompt_does_not_count(verifier: Verifier) -> None:
    wrong = Lying(verifier.model, 3, vocabulary(SMALL).id("last", 77))
    trusting = dataclasses.replace(verifier, model=wrong, engine=None)  # pyright: ignore[reportArgumentType]
    assert verify(vecadd(), trusting).outcome.fault is None


def states(verifier: Verifier) -> list[np.ndarray]:
    engine = verifier.engine
    assert engine is not None
    engine.begin()
    engine.feed(vecadd().prompt)
    return [np.array(state) for state in engine.recurrent_states()]


def test_states_that_differ(small: Path, verifier: Verifier) -> None:
    """A counter may be off by a little, nothing else by anything."""
    wanted = states(verifier)
    equal = compare_states(small, wanted, wanted)
    assert equal.differing == {} and str(equal) == f"final state of {equal.heads} heads equal to the engine's"
    counter = equal.counters[0]
    near = changed(small, wanted, counter, COUNTER_TOLERANCE / 2)
    assert set(near.differing) == {counter} and 0 < near.largest <= COUNTER_TOLERANCE
    near.refuse_beyond_counters()
    with pytest.raises(DifferenceError, match=f"counter at {counter} by"):
        changed(small, wanted, counter, COUNTER_TOLERANCE * 4).refuse_beyond_counters()
    other = next(head for head in written(wanted[0]) if head not in equal.counters)
    with pytest.raises(DifferenceError, match=f"differ in {other}, which is no counter"):
        changed(small, wanted, other, 2.0**-22).refuse_beyond_counters()


def written(state: np.ndarray) -> list[Head]:
    """The heads of the first layer that hold something."""
    rows = state.reshape(SMALL.model.heads, -1)
    return [Head(0, int(head)) for head in np.flatnonzero(rows.any(axis=1))]


def changed(small: Path, wanted: list[np.ndarray], head: Head, by: float) -> StateDifference:
    """The difference where the first entry that is not 0 of a head is off by a part of itself."""
    got = [state.copy() for state in wanted]
    rows = got[head.layer].reshape(SMALL.model.heads, -1)
    (places,) = np.nonzero(rows[head.head])
    rows[head.head, places[0]] *= 1 + by
    return compare_states(small, wanted, got)


def test_the_command(
    small: Path, verifier: Verifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qgpu.runtime.verify.open_verifier", lambda *wanted: verifier)
    program = str(tmp_path / "k.qbin")
    save_program(machine_kernels.program(machine_kernels.vecadd()), program)
    sizes = ["--grid", "1", "--block", "3", "--arg", "i32[]:1,2,3", "--arg", "i32[]:4,5,5000"]
    command = ["run", program, *sizes, "--arg", "i32[3]", "--arg", "i32:3", "--backend", "verify"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert result.stdout == "a = [1, 2, 3]\nb = [4, 5, 5000]\nc = [5, 7, 5003]\nn = 3\n"
    assert "the stock model's argmax is each of " in result.stderr
    assert "heads equal to the engine's" in result.stderr
    assert CliRunner().invoke(main, [*command, "--check"]).exit_code == 2
    assert CliRunner().invoke(main, [*command, "--chunk", "0"]).exit_code == 2
