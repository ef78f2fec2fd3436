"""Checkpoint directories: what `AutoModelForCausalLM.from_pretrained` opens with nothing to trust."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from qgpu.backends.machine.baked import BakedKernel
from qgpu.backends.machine.block import block_fields, encode_block
from qgpu.backends.machine.description import MachineDescription, ModelShape
from qgpu.backends.machine.program import Program
from qgpu.backends.machine.qbin import program_bytes
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.bake import build_baked
from qgpu.backends.transformer.emit import ATTENTION_HEAD_DIM, CONV_TAPS, Layout, lay_out, tensors
from qgpu.backends.transformer.numerics import DTYPES
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.rounding import in_dtype
from qgpu.backends.transformer.stages import Tell, untold

FORMAT_VERSION = 1
"""Version of qgpu.json."""

KERNEL_FILE = "kernel.qbin"
"""What a baked checkpoint has besides, for its host."""

CERTIFICATE = "certificate.json"
"""What a checkpoint has besides that was proved before it was written."""

MAX_POSITIONS = 1 << 20

LAYERS, WEIGHTS = "layers", "weights"
"""Stages: the circuit is laid out in layers, and they are written."""


def emit_checkpoint(
    machine: MachineDescription, directory: str | Path, dtype: str = "float32", tell: Tell = untold
) -> Layout:
    """Write the checkpoint of a machine: config, weights, tokenizer, generation config, qgpu.json.

    Args:
        machine: the machine description.
        directory: an existing or new directory; files of these names in it are replaced.
        dtype: "float32" or "bfloat16".
        tell: is told each stage.

    Returns:
        The layout: where each part of the machine went.

    Raises:
        ScheduleError, AllocationError: the machine does not fit its model shape.
        InexactWeightError: a weight is not exact in `dtype` (an error of the back end).
        ValueError: unknown dtype.
    """
    _check_dtype(dtype)
    tell("circuit")
    circuit = build_processor(machine)
    tell(LAYERS)
    layout = lay_out(circuit, machine.model)
    tell(WEIGHTS)
    _write(layout, machine, Path(directory), dtype, {})
    return layout


def emit_baked(
    baked: BakedKernel,
    directory: str | Path,
    dtype: str = "float32",
    source: str = "",
    tell: Tell = untold,
) -> Layout:
    """Write the checkpoint that is a kernel: as `emit_checkpoint`, with the program's rows in the weights.

    A file more, kernel.qbin, has the kernel for its host; qgpu.json says in `baked` what it is and where its
    rows come from.

    Args:
        source: the name of the kernel's source.
        tell: is told each stage.

    Raises:
        ScheduleError, AllocationError, InexactWeightError, ValueError: as there.
    """
    _check_dtype(dtype)
    circuit = build_baked(baked, tell)
    tell(LAYERS)
    layout = lay_out(circuit, baked.machine.model)
    tell(WEIGHTS)
    data = program_bytes(Program(baked.machine, (baked.kernel,), source))
    _write(layout, baked.machine, Path(directory), dtype, {"baked": baked_metadata(baked, source, data)})
    (Path(directory) / KERNEL_FILE).write_bytes(data)
    return layout


def baked_metadata(baked: BakedKernel, source: str, qbin: bytes) -> dict[str, Any]:
    """Return what qgpu.json says of a baked kernel.

    The keys:
        kernel, source: its name, and the name of its source.
        sha256: of kernel.qbin.
        flat, single: whether the rows are right in thread blocks of one dimension alone, in grids of one
            thread block alone.
        warps: warps of the largest thread block.
        parameters: in order: name, type, whether it is a buffer, and the uniform registers of the argument.
        preloads: what else the host writes: name, and block or uniform register.
        fields: the fields of a row with their widths, in order, the first bit being the lowest of the first.
        rows: each block that can be the current one, by its number: the row as a hexadecimal number.
    """
    rows = {block: encode_block(row, baked.machine) for block, row in baked.rows().items()}
    return {
        "kernel": baked.kernel.name,
        "source": source,
        "sha256": hashlib.sha256(qbin).hexdigest(),
        "flat": baked.flat,
        "single": baked.single,
        "warps": baked.warps,
        "parameters": [dataclasses.asdict(parameter) for parameter in baked.kernel.parameters],
        "preloads": [dataclasses.asdict(preload) for preload in baked.kernel.preloads],
        "fields": {field.name: field.width for field in block_fields(baked.machine)},
        "rows": {block: f"{sum(bit << i for i, bit in enumerate(row)):x}" for block, row in rows.items()},
    }


def _check_dtype(dtype: str) -> None:
    if dtype not in DTYPES:
        raise ValueError(f"dtype '{dtype}' is not one of {', '.join(DTYPES)}")


def _write(
    layout: Layout, machine: MachineDescription, folder: Path, dtype: str, metadata: dict[str, Any]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", model_config(layout, machine, dtype))
    _write_json(folder / "generation_config.json", generation_config(machine))
    _write_tokenizer(folder, machine)
    _write_weights(folder / "model.safetensors", layout, dtype)
    described = {"version": FORMAT_VERSION, "machine": dataclasses.asdict(machine)}
    _write_json(folder / "qgpu.json", described | metadata)


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
    from safetensors.torch import save_file

    named = {name: in_dtype(name, tensor, dtype) for name, tensor in tensors(layout, dtype)}
    save_file(named, path, metadata={"format": "pt"})
    # safetensors makes files that only their owner can read; a checkpoint is as readable as its config.
    path.chmod((path.parent / "config.json").stat().st_mode & 0o777)
