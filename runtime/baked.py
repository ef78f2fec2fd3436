"""Baked checkpoints: the kernel that a checkpoint's weights hold, for the host that launches it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from qgpu.backends.machine.baked import BakedKernel
from qgpu.backends.machine.qbin import QbinError, program_from_bytes
from qgpu.runtime.checkpoints import METADATA, CheckpointError, baked_hash

KERNEL_FILE = "kernel.qbin"


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a checkpoint, baked or not."""
    return (Path(path) / METADATA).is_file()


def open_baked(directory: str | os.PathLike[str]) -> BakedKernel:
    """Return the kernel of a baked checkpoint.

    Raises:
        CheckpointError: the checkpoint is a machine's, without a kernel, or kernel.qbin is not its kernel.
    """
    expected = baked_hash(directory)
    if expected is None:
        raise CheckpointError(
            f"'{directory}' has no kernel in its weights: run a program, with --model {directory}"
        )
    path = Path(directory) / KERNEL_FILE
    try:
        data = path.read_bytes()
        program = program_from_bytes(data)
    except OSError as error:
        raise CheckpointError(f"'{path}': {error.strerror or error}") from None
    except QbinError as error:
        raise CheckpointError(f"'{path}': {error}") from None
    if hashlib.sha256(data).hexdigest() != expected or len(program.kernels) != 1:
        raise CheckpointError(f"'{path}' is not the kernel that the checkpoint was made of")
    shape = _shape(Path(directory) / METADATA)
    return BakedKernel(program.machine, program.kernels[0], **shape)


def _shape(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))["baked"]
        return {"flat": bool(table["flat"]), "single": bool(table["single"]), "warps": int(table["warps"])}
    except (OSError, ValueError, TypeError, KeyError):
        raise CheckpointError(f"'{path}' is not the metadata of a checkpoint") from None
