"""`python -m changes`: changes are of one weight, what they do is seen, and results are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file

from changes import __main__ as command
from changes.launches import Followed, stream
from changes.proving import Prover
from changes.running import Ran, Runner
from changes.weights import KINDS, LIVE, NORM, UNUSED, Weights
from qgpu.backends.machine.description import SMALL, MachineDescription

Built = Callable[[MachineDescription, str], Path]
LAYER = "model.layers.0"
BLOCKS = 8


@pytest.fixture(scope="module")
def folder(checkpoint: Built) -> Path:
    return checkpoint(SMALL, "float32")


@pytest.fixture(scope="module")
def tensors(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


@pytest.fixture(scope="module")
def config(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text())


@pytest.fixture(scope="module")
def streams() -> list[Followed]:
    return [stream(0, SMALL, BLOCKS)]


def test_a_change_is_of_one_live_weight(tensors: dict[str, np.ndarray]) -> None:
    weights, source = Weights(tensors), np.random.default_rng(1)
    seen = set()
    for _ in range(60):
        change = weights.draw(source)
        before, after = tensors[change.tensor], change.of(tensors[change.tensor])
        places = [tuple(place) for place in np.argwhere(before != after).tolist()]
        assert change.place in places and len(places) == 1 + (change.kind == "move")
        assert before[change.place] != 0
        seen.add(change.kind)
    assert seen == set(KINDS)
    assert all(name.endswith("norm.weight") for name in weights.tensors(NORM))
    assert f"{LAYER}.linear_attn.conv1d.weight" in weights.tensors(UNUSED)
    assert f"{LAYER}.linear_attn.conv1d.weight" in weights.tensors(LIVE)


def test_a_wrong_token_is_seen(tensors: dict[str, np.ndarray], config: dict, streams: list[Followed]) -> None:
    runner = Runner(tensors, config, streams)
    decay = f"{LAYER}.linear_attn.A_log"
    assert runner.run({decay: tensors[decay] * 2}) == Ran()
    head = np.roll(tensors["lm_head.weight"], 1, axis=0)
    number = int(np.argmax(streams[0].expected >= 0))
    assert runner.run({"lm_head.weight": head}) == Ran(("stream 0", number))


def test_what_is_not_proved_any_more_is_named(tensors: dict[str, np.ndarray], config: dict) -> None:
    """Of the first layer alone, as of a model that has no other."""
    prover = Prover(tensors, config | {"layer_types": config["layer_types"][:1]}, [])
    decay = f"{LAYER}.linear_attn.A_log"
    assert prover.new_row({decay: tensors[decay] * 2}) is None
    row = prover.new_row({decay: tensors[decay] * 0})
    assert row is not None and row.startswith(f"{decay} row 0: ")


def test_results_are_kept_and_counted(
    checkpoint: Built, streams: list[Followed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(SMALL, "float32")
    monkeypatch.setattr(command, "sequences", lambda machine, number: streams)
    path = tmp_path / "results.jsonl"
    result = CliRunner().invoke(command.main, ["--changes", "3", "--results", str(path)])
    assert result.exit_code == 0, result.output
    known = list(command.read_results(path).values())
    assert [known_one.change.group for known_one in known] == [LIVE] * 3
    assert all(known_one.differences and known_one.found for known_one in known)
    assert "3 (100.0%)" in result.stdout
    more = replace(known[0], unproved=["a row"])
    command.add_result(path, more)
    assert list(command.read_results(path).values()) == [more, *known[1:]]
