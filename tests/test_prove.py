"""The prover: its bounds hold, what it proves it proves, and planted faults are named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.prover.checkpoint import ProofError
from qgpu.backends.prover.cone import Cone, Term
from qgpu.backends.prover.prove import prove
from qgpu.backends.prover.stream import embedded, low_bit

Checkpoint = Callable[[MachineDescription, str], Path]
PROVED_LAYERS = 2
PREFIX = "model.layers"


@st.composite
def cones(draw: st.DrawFn) -> tuple[list[Term], np.ndarray, np.ndarray]:
    """Terms over a few channels, their counts, and pairs of channels that exclude each other."""
    channels = draw(st.integers(1, 5))
    count = np.array(draw(st.lists(st.integers(1, 2), min_size=channels, max_size=channels)))
    excludes = np.zeros((channels, channels), bool)
    for i, j in draw(st.lists(st.tuples(*[st.integers(0, channels - 1)] * 2), max_size=3)):
        excludes[i, j] = excludes[j, i] = i != j
    terms = []
    for _ in range(draw(st.integers(1, 5))):
        weights = np.array(draw(st.lists(st.integers(-3, 3), min_size=channels, max_size=channels)))
        places = np.flatnonzero(weights)
        used = weights[places]
        low, high = int(np.minimum(used, 0) @ count[places]), int(np.maximum(used, 0) @ count[places])
        size = high - low + 1
        table = draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size))
        terms.append(Term(places, used, low, np.array(table, dtype=np.float64)))
    return terms, count, excludes


def allowed(count: np.ndarray, excludes: np.ndarray) -> list[np.ndarray]:
    """Every case that no exclusion forbids."""
    cases = map(np.array, product(*(range(n + 1) for n in count)))
    return [case for case in cases if not (excludes & np.outer(case > 0, case > 0)).any()]


@settings(max_examples=300)
@given(cones())
def test_a_bound_is_never_exceeded(cone: tuple[list[Term], np.ndarray, np.ndarray]) -> None:
    terms, count, excludes = cone
    nothing = np.zeros_like(excludes)
    sums = [
        sum(t.table[int(t.weights @ case[t.places]) - t.first] for t in terms)
        for case in allowed(count, excludes)
    ]
    bounded = Cone(terms, count, excludes, nothing)
    assert bounded.maximum() >= max(sums)
    assert -bounded.maximum(-1) <= min(sums)


def test_exclusive_conjunctions_count_once() -> None:
    """A bit and the product with its complement: intervals say 2."""
    bit = Term(np.array([0]), np.array([1]), 0, np.array([0.0, 1.0]))
    other = Term(np.array([0, 1]), np.array([-1, 1]), -1, np.array([0.0, 0.0, 1.0]))
    nothing = np.zeros((2, 2), bool)
    assert Cone([bit, other], np.array([1, 1]), nothing, nothing).maximum() == 1


def test_the_lowest_bit_of_numbers() -> None:
    assert low_bit(np.array([0.0, 3.0, -12.0, 0.375])).tolist() == [np.inf, 1.0, 4.0, 0.125]


def test_tokens_relate_their_channels() -> None:
    stream = embedded(np.array([[0.0, 0, 0], [1, 0, 2], [0, 1, 2]]))
    assert stream.excludes[0, 1]
    assert not stream.excludes[0, 2]
    assert stream.implies[0, 2]
    assert not stream.implies[2, 0]
    assert stream.unit.tolist() == [1, 1, 2]


@pytest.mark.parametrize("dtype", ["float32"])
def test_layers_are_proved(checkpoint: Checkpoint, dtype: str) -> None:
    certificate = prove(checkpoint(SMALL, dtype), layers=PROVED_LAYERS)
    assert [str(failure) for failure in certificate.failures] == []
    assert not certificate.proved
    assert json.loads(json.dumps(certificate.to_json()))["sha256"] == certificate.sha256
    assert all(report["gate_partial"] < 2**24 for report in certificate.layers)


FAULTS: dict[str, tuple[str, Callable[[np.ndarray], None]]] = {
    "an up that reads data": ("0.mlp.up_proj.weight", lambda t: _put(t, (0, 40), 1.0)),
    "a norm of another size": ("0.input_layernorm.weight", lambda t: _put(t, (40,), 40000.0)),
    "a decay": ("0.linear_attn.A_log", lambda t: _put(t, (0,), 0.0)),
    "two taps": ("0.linear_attn.conv1d.weight", lambda t: _put(t, (0, 0, 0), 1.0)),
    "a write strength between": ("0.linear_attn.in_proj_b.weight", lambda t: _put(t, (3, 0), 5.0)),
}


def _put(tensor: np.ndarray, place: tuple[int, ...], value: float) -> None:
    tensor[place] = value


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(checkpoint: Checkpoint, tmp_path: Path, fault: str) -> None:
    part, plant = FAULTS[fault]
    source, name = checkpoint(SMALL, "float32"), f"{PREFIX}.{part}"
    shutil.copy(source / "config.json", tmp_path)
    tensors = load_file(source / "model.safetensors")
    plant(tensors[name])
    save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, tmp_path / "model.safetensors")
    failures = prove(tmp_path, layers=int(part[0]) + 1).failures
    assert failures
    layer = f"{PREFIX}.{part[0]}."
    assert any(failure.tensor.startswith(layer) for failure in failures)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProofError):
        prove(tmp_path)
