"""A checkpoint directory as a user of transformers meets it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from example_launches import FIRST, launch_of
from qgpu.backends.machine.description import SMALL, MachineDescription, ModelShape, load_description
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.run import run_launch
from qgpu.backends.transformer import emit_checkpoint, fingerprint
from qgpu.backends.transformer.allocate import AllocationError

Checkpoint = Callable[[MachineDescription, str], Path]


def test_the_stock_classes_open_it_and_generate_a_launch(checkpoint: Checkpoint) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3_5ForCausalLM

    folder = checkpoint(SMALL, "float32")
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert type(model) is Qwen3_5ForCausalLM
    assert model.dtype == torch.float32
    (dot,) = [example for example in FIRST if example.kernel == "dot"]
    launch = launch_of(dot, SMALL)
    generated = run_launch(launch).generated
    answer = model.generate(torch.tensor([launch.prompt]))[0, len(launch.prompt) :].tolist()
    assert answer == list(generated)
    ids = vocabulary(SMALL)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.decode(answer) == " ".join(ids.name(token) for token in generated)
    text = " ".join(ids.name(token) for token in range(ids.size))
    assert tokenizer(text).input_ids == list(range(ids.size))


def test_the_folder_holds_what_it_should(checkpoint: Checkpoint) -> None:
    folder = checkpoint(SMALL, "bfloat16")
    names = {"config.json", "generation_config.json", "model.safetensors", "qgpu.json"}
    assert {path.name for path in folder.iterdir()} == names | {"tokenizer.json", "tokenizer_config.json"}
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5ForCausalLM"]
    assert "auto_map" not in config
    assert config["dtype"] == "bfloat16"
    assert config["layer_types"].count("full_attention") == 1
    weights, described = folder / "model.safetensors", folder / "config.json"
    assert os.stat(weights).st_mode == os.stat(described).st_mode


def test_another_size_is_another_checkpoint_of_more_layers(tmp_path: Path) -> None:
    """A larger memory takes more heads than a layer has, so the layers after it move down."""
    file = tmp_path / "roomy.toml"
    file.write_text("lanes = 4\nwarps = 2\nregister_words = 128\nuniform_registers = 32\nrom_blocks = 16\n"
                    "memory_words = 1024\n[model]\nhidden = 1024\nheads = 4\n")  # fmt: skip
    machine = load_description(str(file))
    assert machine.model == ModelShape(hidden=1024, heads=4)
    told: list[str] = []
    layout = emit_checkpoint(machine, tmp_path / "roomy", tell=told.append)
    assert told == ["circuit", "layers", "weights"]
    rows = [
        (layer, len(head.keys))  # pyright: ignore[reportAttributeAccessIssue]
        for layer, heads in enumerate(layout.schedule.heads)
        for head in heads
        if head.unit == "memory"
    ]
    assert sum(count for _, count in rows) == 1024
    assert len({layer for layer, _ in rows}) > 1


def test_a_machine_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "narrow.toml"
    file.write_text("[model]\nhidden = 256\n")
    with pytest.raises(AllocationError, match=r"has 252 places for channels; \d+ are alive at once"):
        emit_checkpoint(load_description(str(file)), tmp_path / "narrow")


def test_an_unknown_dtype_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dtype 'float16' is not one of float32, bfloat16"):
        emit_checkpoint(SMALL, tmp_path / "half", "float16")
    assert not (tmp_path / "half").exists()


def test_the_fingerprint_is_that_of_the_sources() -> None:
    assert fingerprint() == fingerprint()
    assert len(fingerprint()) == 64
