"""Proofs of merged checkpoints: what is proved of one, and planted faults, found with tensor and row."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from merge_bases import VOCABULARY, BaseKind, layout_plan, merged_checkpoint
from qgpu.backends.prover import certify
from qgpu.backends.prover.checkpoint import ProofError
from qgpu.backends.prover.merged.circuit import differences, merged_conditions
from qgpu.backends.prover.merged.prove import MergedCertificate, prove_merged
from qgpu.backends.prover.merged.weights import open_weights
from qgpu.backends.prover.norm import absorbed_below
from qgpu.backends.prover.prove import Failure
from qgpu.backends.transformer.merge.base import MergeError, read_base
from qgpu.backends.transformer.merge.build import build_merged
from qgpu.backends.transformer.merge.plan import MergePlan
from qgpu.runtime.prove_command import prove_command
from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.merging import certificate

TEXT_CLASS = (BaseKind(), "float32")
VISION_CLASS = (
    BaseKind(vision=True, tied=False, shard="4MB", dtype="bfloat16", value_heads=8, seed=1),
    "bfloat16",
)
FLAG = 3
"""The first flag's place among the machine's channels, behind the constants."""

HIDDEN, LAYERS = 256, 11
"""The base's channels, and the compiled layers; a test checks that they are."""


def checkpoint_of(folder: Path, given: tuple[BaseKind, str] = TEXT_CLASS) -> Path:
    return merged_checkpoint(folder, *given, shard_bytes=1 << 25)[1]


def plan_of(given: tuple[BaseKind, str], folder: Path) -> MergePlan:
    base, _ = merged_checkpoint(folder, *given, shard_bytes=1 << 25)
    return dataclasses.replace(layout_plan(), base=read_base(base), dtype=given[1])


def linked(source: Path, target: Path) -> Path:
    """The same checkpoint, file by file."""
    return Path(shutil.copytree(source, target, copy_function=os.link))


def changed(folder: Path, changes: Mapping[str, Mapping[tuple[int, ...], float]]) -> None:
    """Change numbers of a linked checkpoint, by tensor and place."""
    from safetensors.torch import load_file, save_file

    files = open_weights(folder).parts.files
    for path in {files[name] for name in changes}:
        tensors = load_file(path)
        for name in changes.keys() & tensors.keys():
            for place, value in changes[name].items():
                tensors[name][place] = value
        path.unlink()
        save_file(tensors, path, metadata={"format": "pt"})


def rows(certificate: MergedCertificate) -> set[tuple[str, int | None]]:
    return {(failure.tensor, failure.row) for failure in certificate.failures}


@pytest.mark.parametrize("given", [TEXT_CLASS, VISION_CLASS], ids=["text", "vision"])
def test_a_merged_checkpoint_is_proved(given: tuple[BaseKind, str], shared_folder: Path) -> None:
    """Of the compiled layers on the machine's tokens the first ones: the whole takes minutes."""
    folder, plan = checkpoint_of(shared_folder, given), plan_of(given, shared_folder)
    assert (plan.base.hidden, plan.layout.layers, plan.flag) == (HIDDEN, LAYERS, FLAG)
    certificate = prove_merged(folder, merged_conditions(plan), layers=2)
    assert [str(failure) for failure in certificate.failures] == []
    assert not certificate.proved
    gates = [report["gates"] for report in certificate.layers if "gates" in report]
    assert len(gates) == len(plan.base.layer_types)
    assert max(gates) < -16000
    assert max(report["on_text"] for report in certificate.layers if "on_text" in report) < -(2.0**40)
    assert certificate.text["flag_margin"] > 4
    assert certificate.layers[-1]["largest_text_stream"] > 1000
    assert json.loads(json.dumps(certificate.to_json()))["sha256"] == certificate.sha256
    assert differences(open_weights(folder), plan) == []


own = f"model.layers.{LAYERS}"
FAULTS: dict[str, dict[tuple[int, ...], float]] = {
    "model.layers.0.mlp.gate_proj.weight": {(7, HIDDEN): 40.0},
    "model.layers.2.mlp.up_proj.weight": {(9, 5): 1.0},
    "model.layers.3.linear_attn.in_proj_z.weight": {(20, HIDDEN + FLAG): 0.0},
    "model.layers.4.linear_attn.in_proj_qkv.weight": {(300, 11): 2.0**60},
    f"{own}.mlp.gate_proj.weight": {(5, HIDDEN): 0.0},
    f"{own}.linear_attn.in_proj_a.weight": {(1, HIDDEN): 3.0},
    f"{own}.linear_attn.in_proj_b.weight": {(2, HIDDEN): 2.0**14},
    f"{own}.linear_attn.A_log": {(3,): 100.0},
    f"{own}.mlp.down_proj.weight": {(HIDDEN + 40, 3): 0.5},
    f"model.layers.{LAYERS + 1}.linear_attn.in_proj_z.weight": {(17, 30): 2.0**90},
    f"model.layers.{LAYERS + 3}.self_attn.q_proj.weight": {(64 + 6, HIDDEN): -100.0},
    "model.embed_tokens.weight": {(17, HIDDEN + FLAG): 0.0, (18, HIDDEN + 50): 1.0},
    "lm_head.weight": {(VOCABULARY + 9, HIDDEN + FLAG): 0.0, (VOCABULARY + 10, 12): 1.0},
}
"""One weight of each row; rows of neurons, of the layers of the base, of text and of the machine."""


def test_faults_are_found_with_tensor_and_row(shared_folder: Path, tmp_path: Path) -> None:
    """All at once, and nothing else is, but for what the first one does to sums of the same neurons."""
    folder = linked(checkpoint_of(shared_folder), tmp_path / "faulty")
    changed(folder, FAULTS)
    wanted = {(name, place[0]) for name, places in FAULTS.items() for place in places}
    found = rows(prove_merged(folder, layers=1))
    assert wanted - found == set()
    assert {name for name, _ in found - wanted} <= {"model.layers.0.mlp.down_proj.weight"}


def test_a_weight_of_another_channel_is_a_difference(shared_folder: Path, tmp_path: Path) -> None:
    folder, plan = (
        linked(checkpoint_of(shared_folder), tmp_path / "faulty"),
        plan_of(TEXT_CLASS, shared_folder),
    )
    faults = {
        "model.layers.3.mlp.gate_proj.weight": {(2, HIDDEN + 100): 128.0},
        "model.layers.5.mlp.gate_proj.weight": {(2, HIDDEN + FLAG): 128.0},
        "lm_head.weight": {(VOCABULARY + 9, HIDDEN + FLAG): 0.0},
    }
    changed(folder, faults)
    found = {(d.tensor, d.row, d.column) for d in differences(open_weights(folder), plan)}
    assert ("model.layers.5.mlp.gate_proj.weight", 2, HIDDEN + FLAG) in found
    assert ("lm_head.weight", VOCABULARY + 9, HIDDEN + FLAG) in found
    assert any(tensor.startswith("model.layers.3.mlp") and row == 2 for tensor, row, _ in found)


@pytest.mark.parametrize("name", ["layers", "first_token", "hidden"])
def test_a_wrong_statement_proves_nothing(name: str, shared_folder: Path, tmp_path: Path) -> None:
    folder = linked(checkpoint_of(shared_folder), tmp_path / "misled")
    content = json.loads((folder / "qgpu.json").read_text())
    content["merged"][name] -= 1
    (folder / "qgpu.json").unlink()
    (folder / "qgpu.json").write_text(json.dumps(content))
    assert prove_merged(folder, layers=0).failures


def test_what_is_no_merged_checkpoint_is_refused(shared_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ProofError):
        prove_merged(tmp_path)
    folder = linked(checkpoint_of(shared_folder), tmp_path / "misled")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    with pytest.raises(ProofError, match="should be"):
        prove_merged(folder)


def test_squares_that_are_absorbed() -> None:
    """Whatever the order in which they are added, in float32; and beyond that they are not."""
    source = np.random.default_rng(0)
    for amplitudes in ((16, 16, 8), (4, 4), (16, 16, 7, 5)):
        squares = np.array([(a * 2.0**16) ** 2 for a in amplitudes])
        limit, whole = absorbed_below(squares), np.float32(squares.sum())
        for _ in range(300):
            data = source.dirichlet(np.full(source.integers(1, 9), 0.5)) * limit * 0.999
            assert added(np.concatenate([squares, data]), source) == whole
    pair = np.array([2.0**36, 2.0**36])
    assert added(np.array([*pair, 4.0 * absorbed_below(pair)]), source) != np.float32(pair.sum())


def added(numbers: np.ndarray, source: np.random.Generator) -> np.float32:
    """The sum of numbers in float32, two at random at a time."""
    left = list(numbers.astype(np.float32))
    while len(left) > 1:
        source.shuffle(left)
        left.append(left.pop() + left.pop())
    return left[0]


HEAD_FIGURES = {"code_margin": 1.0, "kind_margin": 8.0, "text_below": 1900.0}


def short_proof(folder: Path, conditions: Any = (), watch: Any = None) -> MergedCertificate:
    """A proof of all but the machine's tokens in the compiled layers, and figures for those."""
    found = prove_merged(folder, layers=0)
    found.layers[-1] |= HEAD_FIGURES
    found.complete = True
    return found


def test_the_card_has_the_certificate(shared_folder: Path, tmp_path: Path) -> None:
    plan = plan_of(TEXT_CLASS, shared_folder)
    base, merged = merged_checkpoint(shared_folder, *TEXT_CLASS, shard_bytes=1 << 25)
    assert "qgpu prove DIR --against-machine mini" in (merged / "README.md").read_text()
    out = tmp_path / "out"
    content = []

    def prove(folder: Path) -> dict[str, Any]:
        assert not out.exists()
        content.append(short_proof(folder).to_json())
        return content[0]

    build_merged(plan, base, out, "base", "qgpuc", shard_bytes=1 << 25, certify=prove)
    assert json.loads((out / "certificate.json").read_text()) == json.loads(json.dumps(content[0]))
    text = (out / "README.md").read_text()
    assert content[0]["sha256"] in text
    assert "1,900 above every token of text" in text
    assert all(condition in text for condition in content[0]["conditions"])


def test_what_is_not_proved_is_not_written(shared_folder: Path, tmp_path: Path) -> None:
    base, _ = merged_checkpoint(shared_folder, *TEXT_CLASS, shard_bytes=1 << 25)

    def refuse(folder: Path) -> dict[str, Any]:
        raise MergeError("not proved")

    with pytest.raises(MergeError):
        build_merged(layout_plan(), base, tmp_path / "out", "base", "qgpuc", certify=refuse)
    assert list(tmp_path.iterdir()) == []


def test_a_merge_that_is_not_proved_ends_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With each row that is not, and status 1; and the certificate of one that is goes to the card."""
    proof = MergedCertificate("", "float32", [], complete=True)
    monkeypatch.setattr(certify, "certify_merged", lambda *given: certify.Found(proof, "mini", []))
    assert certificate(layout_plan(), print, tmp_path)["proved"]
    proof.failures.append(Failure("lm_head.weight", 3, "too small"))
    with pytest.raises(DiagnosticError, match="nothing is written: 1 row"):
        certificate(layout_plan(), print, tmp_path)


def test_the_command_says_what_it_found(
    shared_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certify, "prove_merged", short_proof)
    folder = linked(checkpoint_of(shared_folder), tmp_path / "merged")
    file = tmp_path / "certificate.json"
    runner = CliRunner(catch_exceptions=False)
    result = runner.invoke(prove_command, [str(folder), "--certificate", str(file)])
    assert result.exit_code == 0
    assert result.stderr.startswith("qgpu: note: with --against-machine mini the rules")
    assert json.loads(file.read_text())["proved"]
    changed(folder, {f"{own}.mlp.gate_proj.weight": {(5, HIDDEN): 0.0}})
    result = runner.invoke(prove_command, [str(folder)])
    assert result.exit_code == 1
    assert f"{own}.mlp.gate_proj.weight row 5" in result.stderr
