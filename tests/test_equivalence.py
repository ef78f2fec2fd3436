"""Circuits recovered from tensors: they are the machine's whatever the order, and every fault is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file, save_file

from changes.weights import LIVE, NORM, Weights
from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.prover import certify
from qgpu.backends.prover import prove as prover
from qgpu.backends.prover.checkpoint import Checkpoint
from qgpu.backends.prover.equivalence.check import Equivalence, check
from qgpu.backends.prover.equivalence.meant import Meant
from qgpu.backends.transformer.emit import Layout, lay_out
from qgpu.backends.transformer.processor import build_processor
from qgpu.runtime.prove_command import prove_command

Built = Callable[[MachineDescription, str], Path]


class Loaded(dict[str, np.ndarray]):
    """A checkpoint's tensors, which may be changed."""

    def __init__(self, folder: Path) -> None:
        checkpoint = Checkpoint(folder)
        super().__init__((name, checkpoint[name]) for name in checkpoint.names)


@dataclass(frozen=True)
class Subject:
    """A checkpoint's tensors and what they are compared with."""

    tensors: Loaded
    equivalence: Equivalence
    meant: Meant

    def part(self, name: str) -> str:
        """The part that a tensor belongs to."""
        return next(p for p in self.equivalence.parts if name in self.equivalence.tensors_of(p))


@pytest.fixture(scope="module")
def layout() -> Layout:
    return lay_out(build_processor(SMALL), SMALL.model)


@pytest.fixture(scope="module")
def subject(checkpoint: Built, layout: Layout) -> Subject:
    tensors, meant = Loaded(checkpoint(SMALL, "float32")), Meant(layout, "float32")
    return Subject(tensors, Equivalence(meant, tensors), meant)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_checkpoint_is_its_circuit(checkpoint: Built, layout: Layout, dtype: str) -> None:
    assert check(checkpoint(SMALL, dtype), layout) == []


def test_the_order_of_neurons_heads_and_rows_means_nothing(subject: Subject) -> None:
    source, layout = np.random.default_rng(1), subject.meant.layout
    changed, shape = dict(subject.tensors), layout.shape
    for part in subject.equivalence.parts[1:-1]:
        if part.endswith("mlp"):
            order = source.permutation(layout.intermediate)
            for name in ("gate", "up"):
                changed[f"{part}.{name}_proj.weight"] = changed[f"{part}.{name}_proj.weight"][order]
            changed[f"{part}.down_proj.weight"] = changed[f"{part}.down_proj.weight"][:, order]
        elif part.endswith("linear_attn"):
            heads = source.permutation(shape.heads)
            rows = np.concatenate([h * shape.key_dim + source.permutation(shape.key_dim) for h in heads])
            free = np.concatenate([h * shape.head_dim + np.arange(shape.head_dim) for h in heads])
            count = shape.heads * shape.key_dim
            wide = np.concatenate([rows, count + rows, 2 * count + free])
            for name, order in {
                "in_proj_qkv": wide,
                "conv1d": wide,
                "in_proj_z": free,
                "in_proj_b": heads,
            }.items():
                changed[f"{part}.{name}.weight"] = changed[f"{part}.{name}.weight"][order]
            changed[f"{part}.out_proj.weight"] = changed[f"{part}.out_proj.weight"][:, free]
    assert any(not np.array_equal(changed[name], subject.tensors[name]) for name in changed)
    for part in subject.equivalence.parts:
        assert subject.equivalence.differences(part, changed) == []


def test_every_weight_counts(subject: Subject) -> None:
    """A change of a live weight of any tensor is a difference, which names tensor and row."""
    weights, source = Weights(subject.tensors), np.random.default_rng(1)
    for name in (*weights.tensors(LIVE), *weights.tensors(NORM)):
        change = weights.draw(source, NORM if name.endswith("norm.weight") else LIVE, name)
        if change.kind == "double" and name.endswith("A_log"):
            continue
        changed = {**subject.tensors, name: change.of(subject.tensors[name])}
        found = subject.equivalence.differences(subject.part(name), changed)
        named = [d for d in found if d.tensor == name and d.row in (change.place[0], None)]
        assert named, (str(change), list(map(str, found)))


def column_of(layout: Layout, name: str) -> int:
    """The place of a channel in the residual stream."""
    return next(place for channel, place in layout.allocation.place.items() if channel.name == name)


def test_a_literal_of_another_channel_is_named(subject: Subject) -> None:
    """Exact, and wrong: a neuron of the adder that reads the next digit's bit."""
    layout = subject.meant.layout
    source, other = "product.low.low.2.1", "product.low.low.3.1"
    places = column_of(layout, source), column_of(layout, other)
    layer, index, neuron = next(
        (layer, index, neuron)
        for layer, neurons in enumerate(layout.schedule.neurons)
        for index, neuron in enumerate(neurons)
        if source in {c.name for c in neuron.gate.terms} and other not in {c.name for c in neuron.gate.terms}
    )
    name = f"model.layers.{layer}.mlp.gate_proj.weight"
    gate = subject.tensors[name].copy()
    gate[index, list(places)] = gate[index, list(reversed(places))]
    found = subject.equivalence.differences(subject.part(name), {**subject.tensors, name: gate})
    assert {(d.tensor, d.row, d.column) for d in found} == {(name, index, place) for place in places}
    assert {d.unit for d in found} == {neuron.unit}
    assert any(f"counts {other} " in d.reason and "not 0 times" in d.reason for d in found)


def test_a_tensor_of_none_is_named(checkpoint: Built, layout: Layout, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    shutil.copytree(checkpoint(SMALL, "float32"), folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.0.mlp.gate_proj.bias"] = np.ones(4, np.float32)
    save_file(tensors, folder / "model.safetensors")
    (only,) = check(folder, layout)
    assert only.tensor == "model.layers.0.mlp.gate_proj.bias"


def test_a_checkpoint_of_other_sizes_is_refused(checkpoint: Built) -> None:
    other = replace(SMALL, payload_bits=11)
    meant = lay_out(build_processor(other), other.model)
    found = [str(difference) for difference in check(checkpoint(SMALL, "float32"), meant)]
    assert any(line.startswith("config.json: vocab_size is ") for line in found)


def test_the_command_says_what_differs(
    checkpoint: Built, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof itself is taken for done, and the layout for made."""
    monkeypatch.setattr(certify, "lay_out", lambda *arguments: layout)
    proof = prover.Certificate("0", "float32", [], complete=True)
    monkeypatch.setattr(certify, "prove", lambda *arguments: proof)
    folder = tmp_path / "changed"
    shutil.copytree(checkpoint(SMALL, "float32"), folder)
    arguments = [
        str(folder),
        "--against-machine",
        "small",
        "--certificate",
        str(tmp_path / "certificate.json"),
    ]
    result = CliRunner().invoke(prove_command, arguments)
    assert result.exit_code == 0, result.output
    assert "\nthe circuit of machine small\n" in f"\n{result.stdout}"
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"][40] *= 2
    save_file(tensors, folder / "model.safetensors")
    result = CliRunner().invoke(prove_command, arguments)
    assert result.exit_code == 1
    assert "error: not the circuit: lm_head.weight row 40 column" in result.stderr
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert certificate["machine"] == "small"
    assert {d["row"] for d in certificate["differences"]} == {40}


def test_the_command_refuses_what_would_be_in_vain_or_lost(checkpoint: Built, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(checkpoint(SMALL, "float32"), folder)
    before = (folder / "config.json").read_bytes()
    for arguments, status, message in (
        (["--certificate", str(folder / "config.json")], 2, "is the input file"),
        (["--certificate", str(tmp_path / "none" / "c.json")], 2, "There is no folder"),
        (["--against-machine", "seed"], 1, "is the checkpoint of another machine: 'small' has"),
    ):
        result = CliRunner(catch_exceptions=False).invoke(prove_command, [str(folder), *arguments])
        assert (result.exit_code, message in result.stderr) == (status, True), result.stderr
    assert (folder / "config.json").read_bytes() == before
