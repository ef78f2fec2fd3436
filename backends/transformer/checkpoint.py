"""Checkpoint directories: what `AutoModelForCausalLM.from_pretrained` opens with nothing to trust."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.backends.machine.description import MachineDescription, ModelShape
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.emit import ATTENTION_HEAD_DIM, CONV_TAPS, Layout, lay_out, tensors
from qgpu.backends.transformer.numerics import DTYPES
from qgpu.backends.transformer.processor import build_processor

FORMAT_VERSION = 1
"""Version of qgpu.json."""

MAX_POSITIONS = 1 << 20


class InexactWeightError(ValueError):
    """A weight that the checkpoint's dtype can't hold exactly."""


def emit_checkpoint(machine: MachineDescription, directory: str | Path, dtype: str = "float32") -> Layout:
    """Write the checkpoint of a machine: config, weights, tokenizer, generation config, qgpu.json.

    Args:
        machine: the machine description.
        directory: an existing or new directory; files of these names in it are replaced.
        dtype: "float32" or "bfloat16".

    Returns:
        The layout: where each part of the machine went.

    Raises:
        ScheduleError, AllocationError: the machine does not fit its model shape.
        InexactWeightError: a weight is not exact in `dtype` (an error of the back end).
        ValueError: unknown dtype.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype '{dtype}' is not one of {', '.join(DTYPES)}")
    layout = lay_out(build_processor(machine), machine.model)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", model_config(layout, machine, dtype))
    _write_json(folder / "generation_config.json", generation_config(machine))
    _write_tokenizer(folder, machine)
    _write_weights(folder / "model.safetensors", layout, dtype)
    _write_json(folder / "qgpu.json", {"version": FORMAT_VERSION, "machine": dataclasses.asdict(machine)})
    return layout


def model_config(layout: Layout, machine: MachineDescription, dtype: str) -> dict[str, Any]:
    """Return the content of config.json, a `Qwen3_5TextConfig`."""
    shape: ModelShape = machine.model
    kinds = ["linear_attention"] * layout.layers
    if layout.schedule.attention_layer is not None:
        kinds[layout.schedule.attention_layer] = "full_attention"
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "dtype": dtype,
        "vocab_size": layout.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": layout.intermediate,
        "num_hidden_layers": layout.layers,
        "layer_types": kinds,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": ATTENTION_HEAD_DIM,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "attention_bias": False,
        "linear_conv_kernel_dim": CONV_TAPS,
        "linear_key_head_dim": shape.key_dim,
        "linear_value_head_dim": shape.head_dim,
        "linear_num_key_heads": shape.heads,
        "linear_num_value_heads": shape.heads,
        "max_position_embeddings": MAX_POSITIONS,
        "tie_word_embeddings": False,
        "use_cache": True,
        **_special_tokens(machine),
    }


def generation_config(machine: MachineDescription) -> dict[str, Any]:
    """Return the content of generation_config.json: greedy, ending at EXIT or any FAULT."""
    return {"do_sample": False, "max_new_tokens": MAX_POSITIONS, **_special_tokens(machine)}


def _special_tokens(machine: MachineDescription) -> dict[str, Any]:
    words = vocabulary(machine)
    faults = range(words.first["fault"], words.first["fault"] + words.counts["fault"])
    return {
        "pad_token_id": words.id("pad"),
        "bos_token_id": words.id("reset"),
        "eos_token_id": [words.id("exit"), *faults],
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _write_tokenizer(folder: Path, machine: MachineDescription) -> None:
    words = vocabulary(machine)
    table = {words.name(token): token for token in range(words.size)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": table, "unk_token": "<pad>"},
    }
    _write_json(folder / "tokenizer.json", tokenizer)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "bos_token": "<reset>",
        "eos_token": "<exit>",
        "unk_token": "<pad>",
        "model_max_length": MAX_POSITIONS,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_weights(path: Path, layout: Layout, dtype: str) -> None:
    import torch
    from safetensors.torch import save_file

    kind = getattr(torch, dtype)
    named: dict[str, torch.Tensor] = {}
    for name, tensor in tensors(layout, dtype):
        exact = torch.from_numpy(np.ascontiguousarray(tensor))
        named[name] = exact.to(kind)
        if dtype != "float32" and not _may_round(name):
            _check_exact(name, exact, named[name])
    save_file(named, path, metadata={"format": "pt"})
    # safetensors makes files that only their owner can read; a checkpoint is as readable as its config.
    path.chmod((path.parent / "config.json").stat().st_mode & 0o777)


def _may_round(name: str) -> bool:
    """The norms' 2^16 - 1 rounds to 2^16, and its output back; a counter's gain is approximate by design."""
    return name.endswith(("layernorm.weight", "model.norm.weight", "out_proj.weight"))


def _check_exact(name: str, exact: Any, rounded: Any) -> None:
    wrong = (rounded.float() != exact).nonzero()
    if len(wrong):
        where = tuple(wrong[0].tolist())
        raise InexactWeightError(
            f"{name}{list(where)} = {exact[where].item()} is not exact in {rounded.dtype}"
        )
