"""Build a merged checkpoint: a stock `Qwen3_5ForCausalLM`, written beside its place and then moved there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.checkpoint import CERTIFICATE
from qgpu.backends.transformer.merge.base import CONFIG, MergeError
from qgpu.backends.transformer.merge.card import card
from qgpu.backends.transformer.merge.configuration import (
    generation_config,
    merged_config,
    metadata,
    write_json,
)
from qgpu.backends.transformer.merge.plan import MergePlan
from qgpu.backends.transformer.merge.shapes import Role
from qgpu.backends.transformer.merge.shards import SHARD_BYTES, shards, write_shards
from qgpu.backends.transformer.merge.source import BaseTensors, open_base
from qgpu.backends.transformer.merge.tensors import MergedTensors
from qgpu.backends.transformer.merge.tokenizer import write_tokenizer

METADATA = "qgpu.json"

Certify = Callable[[Path], Mapping[str, Any]]
"""Proves a directory, and returns the certificate's content."""

TEXT_FOLDER = "qgpu"
TEXT_NORMS = "text-norms.safetensors"
"""In TEXT_FOLDER: the base's norms, which the wider stream rounds; with them text runs at its own width."""


def build_merged(
    plan: MergePlan,
    source: str | Path,
    out: str | Path,
    base_name: str,
    command: str,
    written: Callable[[int], None] = lambda count: None,
    shard_bytes: int = SHARD_BYTES,
    certify: Certify | None = None,
) -> None:
    """Write the checkpoint of a plan to a directory that does not exist yet, or is empty.

    It is written into a directory beside it, whose config.json comes after the tensors, and then takes its
    name: what is interrupted leaves nothing that loads.

    Args:
        source: the base's directory.
        base_name, command: what the model card calls the base, and says of how it was built.
        written: told of bytes as they are written.
        shard_bytes: size of a file of tensors.
        certify: proves the checkpoint before it takes its name; what it raises ends the build.

    Raises:
        MergeError: the base cannot be read, or `out` is in use.
        OSError: `out` cannot be written.
    """
    folder, target = Path(source), Path(out)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise MergeError(f"'{target}' exists already")
    base = open_base(folder, plan.base)
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        merged = _fill(building, plan, folder, base, base_name, written, shard_bytes)
        certificate = None if certify is None else certify(building)
        if certificate is not None:
            write_json(building / CERTIFICATE, certificate)
        text = card(plan, (base_name, command), merged.largest, merged.margin, certificate)
        (building / "README.md").write_text(text, encoding="utf-8")
        building.chmod(0o777 & ~_umask())
        if target.exists():
            target.rmdir()
        building.rename(target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _fill(
    building: Path,
    plan: MergePlan,
    source: Path,
    base: BaseTensors,
    base_name: str,
    written: Callable[[int], None],
    shard_bytes: int,
) -> MergedTensors:
    """Write all but the card, which may have to wait for a proof; return what has made the tensors."""
    write_tokenizer(source, building, vocabulary(plan.machine), plan.base.vocabulary)
    merged = MergedTensors(plan, base)
    write_shards(building, shards(plan.tensors, plan.dtype, shard_bytes), plan.dtype, merged.blocks, written)
    _write_text_norms(building, plan, base)
    write_json(building / "generation_config.json", generation_config(plan, source))
    write_json(building / METADATA, metadata(plan, base_name))
    write_json(building / CONFIG, merged_config(plan))
    return merged


def _write_text_norms(building: Path, plan: MergePlan, base: BaseTensors) -> None:
    import torch
    from safetensors.torch import save_file

    dtype = getattr(torch, plan.dtype)
    names = [name for name, tensor in base.shapes.items() if tensor.role is Role.NORM]
    path = building / TEXT_FOLDER / TEXT_NORMS
    path.parent.mkdir()
    save_file({name: base.whole(name).to(dtype) for name in names}, path, metadata={"format": "pt"})
    path.chmod(0o666 & ~_umask())


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
