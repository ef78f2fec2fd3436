"""Read a checkpoint directory: the configuration, and float32 tensors by name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qgpu.backends.engine.layout import RING

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
REQUIRED = {"model_type": "qwen3_5_text", "hidden_act": "silu", "attention_bias": False, "dtype": "float32"}
"""What a config has to say for the engine to compute what the model does."""


class ModelError(ValueError):
    """A checkpoint that cannot be read, or is of a kind that the engine does not compute exactly."""


class Arrays(Protocol):
    """Tensors by name, as float32 arrays."""

    def __getitem__(self, name: str) -> np.ndarray: ...


class Tensors:
    """The tensors of a safetensors file by name."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getitem__(self, name: str) -> np.ndarray:
        tensor = self._file.get_tensor(name)
        if tensor.dtype != np.float32:
            raise ModelError(f"tensor '{name}' is {tensor.dtype}, not float32")
        return tensor


@contextmanager
def opened(directory: str | os.PathLike[str]) -> Iterator[Tensors]:
    """Open the tensors of a checkpoint.

    Raises:
        ModelError: there are none, one that is asked for is missing, or the file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(Path(directory) / WEIGHTS, framework="np") as file:
            yield Tensors(file)
    except (OSError, SafetensorError) as error:
        raise ModelError(str(error)) from error


def read_config(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of config.json.

    Raises:
        ModelError: there is none, or it is not that of a model which the engine computes.
    """
    try:
        config = json.loads((Path(directory) / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(str(error)) from error
    if not isinstance(config, dict):
        raise ModelError(f"{CONFIG} is not the configuration of a model")
    check_config(config)
    return config


def check_config(config: dict[str, Any]) -> None:
    """Check that a configuration is that of a model which the engine computes.

    Raises:
        ModelError: it is not.
    """
    for name, value in REQUIRED.items():
        if config.get(name) != value:
            raise ModelError(f"{CONFIG} has {name} = {config.get(name)!r}; the engine computes {value!r}")
    if config.get("linear_num_key_heads") != config.get("linear_num_value_heads"):
        raise ModelError("key and value heads differ in number")
    taps = config.get("linear_conv_kernel_dim", RING)
    if not isinstance(taps, int) or not 1 <= taps <= RING:
        raise ModelError(f"the convolution has {taps} taps; the engine computes up to {RING}")
