"""Merged checkpoints driven: launches on the compiled layers alone, text on the base's own, and the
commands.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from example_launches import FIRST, expected_buffers, launch_of
from merge_bases import CORPUS, MACHINE, BaseKind, make_tokenizer, merged_checkpoint
from qgpu.backends.machine.qbin import program_bytes
from qgpu.runtime.checkpoints import CheckpointError
from qgpu.runtime.cli import main
from qgpu.runtime.engine import EngineError
from qgpu.runtime.launch import run
from qgpu.runtime.merged import Merged, open_merged
from qgpu.runtime.stock import load_checkpoint
from qgpu.toolchain.compile import compile_source

BASE = BaseKind()
QUESTION = [{"role": "user", "content": "What is the dot product of [1, 2, 3] and [4, 5, 6]?"}]
TOOL = {"type": "function", "function": {"name": "cuda", "description": "runs kernels", "parameters": {}}}

(DOT,) = [example for example in FIRST if example.kernel == "dot"]
(SAXPY,) = [example for example in FIRST if example.kernel == "saxpy"]


@pytest.fixture(scope="module")
def folders(shared_folder: Path) -> tuple[Path, Path]:
    return merged_checkpoint(shared_folder, BASE, "float32", shard_bytes=1 << 25)


@pytest.fixture(scope="module")
def merged(folders: tuple[Path, Path]) -> Merged:
    return open_merged(folders[1])


def qgpu(*arguments: str | Path) -> Result:
    return CliRunner(catch_exceptions=False).invoke(main, list(map(str, arguments)))


def test_text_is_the_bases_to_the_bit(folders: tuple[Path, Path], merged: Merged) -> None:
    import torch

    base = load_checkpoint(folders[0], "float32")
    ids = torch.tensor([make_tokenizer()("".join(CORPUS))["input_ids"]])
    with torch.inference_mode():
        assert torch.equal(base(ids).logits, merged.text_model.model(ids).logits)


@pytest.mark.parametrize("backend", ["engine", "weights"])
def test_launches_run_on_the_compiled_layers(merged: Merged, backend: str) -> None:
    engine = merged.launch_engine(backend)
    assert engine.layers is not None
    assert engine.layers < merged.text_model.model.config.num_hidden_layers + engine.layers
    for example in (DOT, SAXPY) if backend == "weights" else FIRST[:6]:
        outcome = run(launch_of(example, MACHINE), engine, check=True)
        buffers = [content for content in outcome.buffers if content is not None]
        assert buffers == expected_buffers(example), example.kernel


def test_a_launch_does_not_touch_text(merged: Merged) -> None:
    before = list(merged.generate_text(QUESTION, limit=8))
    run(launch_of(SAXPY, MACHINE), merged.launch_engine("weights"))
    assert list(merged.generate_text(QUESTION, limit=8)) == before


def test_the_chat_template_gets_tools_and_arguments(merged: Merged) -> None:
    tokens = merged.text_model.prompt(QUESTION, [TOOL], {"enable_thinking": False})
    text = merged.tokenizer.decode(tokens)
    assert '"name": "cuda"' in text
    assert text.endswith("</think>\n\n")


def test_a_reply_ends_at_its_end_or_at_the_limit(merged: Merged, monkeypatch: pytest.MonkeyPatch) -> None:
    said = make_tokenizer()("<think>it is 32</think><|im_end|> and more")["input_ids"]
    model = merged.text_model

    def scripted(script: list[int]) -> Any:
        left = iter(script)
        return lambda cache, tokens: next(left)

    monkeypatch.setattr(model, "_feed", scripted(said))
    assert "".join(merged.generate_text(QUESTION)) == "<think>it is 32</think>"
    monkeypatch.setattr(model, "_feed", scripted(said[:1] * 100))
    assert "".join(merged.generate_text(QUESTION, limit=5)) == "<think>" * 5


def test_what_is_no_merged_checkpoint(tmp_path: Path, merged: Merged) -> None:
    with pytest.raises(CheckpointError):
        open_merged(tmp_path)
    with pytest.raises(EngineError, match="no back end"):
        merged.launch_engine("gpu")


def test_qgpu_run_takes_a_merged_checkpoint(folders: tuple[Path, Path], tmp_path: Path) -> None:
    program = compile_source(SAXPY.file.read_text(encoding="utf-8"), str(SAXPY.file), "cu", MACHINE)
    (tmp_path / "k.qbin").write_bytes(program_bytes(program))
    arguments: list[str] = []
    for arg in SAXPY.args:
        values = getattr(arg, "tolist", None)
        arguments += ["--arg", f"i32:{arg}" if values is None else f"i32[]:{','.join(map(str, values()))}"]
    shape = ["--grid", ",".join(map(str, SAXPY.grid)), "--block", ",".join(map(str, SAXPY.block))]
    told = []
    for backend in ("engine", "weights"):
        options = ["--model", folders[1], "--backend", backend, "--check", "--json"]
        result = qgpu("run", tmp_path / "k.qbin", *shape, *arguments, *options)
        assert result.exit_code == 0, result.output
        told.append(json.loads(result.stdout))
    engine, whole = told
    assert engine["args"] == whole["args"]
    assert whole["compiled_layers"] == engine["compiled_layers"] + BASE.layers


def test_check_text(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(CORPUS), encoding="utf-8")
    result = qgpu("check-text", *folders, "--text", tmp_path / "text", "--json", "--tokens", "40")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    whole, driven = told["merged, as one model"], told["merged, driven by qgpu"]
    assert 0 < whole["mean"] < 1e-9
    assert whole["added"] < -100
    assert (driven["mean"], driven["largest"], driven["same_argmax"]) == (0, 0, 1)
    assert told["base: float32, bfloat16"]["mean"] > 1e-5
    assert told["base: its channels permuted"]["mean"] < 1e-8


def test_check_text_refuses(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("words and words", encoding="utf-8")
    for arguments, message in (
        ((*folders, "--text", tmp_path / "none"), "cannot read"),
        ((*folders, "--text", tmp_path / "text", "--dtype", "bfloat16"), "float32 checkpoint"),
        ((folders[0], folders[0], "--text", tmp_path / "text"), "no merged checkpoint"),
    ):
        result = qgpu("check-text", *arguments)
        assert result.exit_code == 1
        assert message in result.stderr
