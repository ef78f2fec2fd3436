"""How large a checkpoint is, and how much of it is zero."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class CheckpointSizes:
    """Sizes of a checkpoint.

    Attributes:
        layers, hidden, vocabulary: as in its config.json.
        numbers, nonzeros: of all tensors.
        bytes: of the file of tensors.
    """

    layers: int
    hidden: int
    vocabulary: int
    numbers: int
    nonzeros: int
    bytes: int


def checkpoint_sizes(directory: str | os.PathLike[str]) -> CheckpointSizes:
    """Read the sizes of a float32 checkpoint.

    Raises:
        OSError, KeyError: it is none.
    """
    from safetensors import safe_open

    config = json.loads(Path(directory, "config.json").read_text(encoding="utf-8"))
    path = Path(directory, "model.safetensors")
    numbers = nonzeros = 0
    with safe_open(path, framework="np") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name)
            numbers += tensor.size
            nonzeros += int(np.count_nonzero(tensor))
    return CheckpointSizes(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        vocabulary=config["vocab_size"],
        numbers=numbers,
        nonzeros=nonzeros,
        bytes=path.stat().st_size,
    )
