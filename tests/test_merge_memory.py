"""A merge of more than 1 GB: its tensors stream, so that it needs little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from math import prod
from pathlib import Path

import pytest

from merge_bases import make_tokenizer
from qgpu.backends.transformer.merge.base import read_base
from qgpu.backends.transformer.merge.shapes import model_tensors

PUBLISHED = Path(__file__).parent / "data" / "qwen3_5" / "0.8B"
STATUS = Path("/proc/self/status")
VOCABULARY, LAYERS = 100_000, 4
GIB = 1 << 30

MERGE = """\
import sys
from pathlib import Path
from qgpu.toolchain.driver import main
try:
    main(["--emit-weights", *sys.argv[1:]], prog_name="qgpuc")
finally:
    print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
"""Prints the most memory, in KiB, that qgpuc has had at once."""


def save_base(folder: Path) -> None:
    """A base with layers as of Qwen3.5-0.8B, but fewer of them and of tokens; one block of noise fills it."""
    import torch
    from safetensors.torch import save_file

    text = json.loads((PUBLISHED / "config.json").read_text())["text_config"]
    config = {**text, "vocab_size": VOCABULARY, "num_hidden_layers": LAYERS, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["Qwen3_5ForCausalLM"]}))
    base = read_base(folder)
    noise = (0.03 * torch.randn(1 << 16)).bfloat16()
    tensors = {
        tensor.name: noise.repeat(-(-tensor.numbers // len(noise)))[: prod(tensor.shape)].view(tensor.shape)
        for tensor in model_tensors(base, base.layer_types, base.hidden, base.vocabulary, base.tied)
    }
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    make_tokenizer().save_pretrained(folder)


@pytest.mark.skipif(not STATUS.exists(), reason="the peak is read from /proc")
def test_a_merge_needs_twice_its_largest_tensor_and_a_gibibyte_at_most(tmp_path: Path) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    base.mkdir()
    save_base(base)
    ran = subprocess.run(
        [sys.executable, "-c", MERGE, "--base", base, "-o", out], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    index = json.loads((out / "model.safetensors.index.json").read_text())
    config = json.loads((out / "config.json").read_text())
    largest = 2 * config["vocab_size"] * config["hidden_size"]
    assert index["metadata"]["total_size"] > GIB
    assert 1024 * int(ran.stdout) < 2 * largest + GIB
