"""Read what is proved: config.json, and the tensors of model.safetensors as float64, with the file's hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qgpu.backends.transformer.merge.base import DEFAULTS, Base, MergeError, base_of
from qgpu.backends.transformer.merge.shapes import model_tensors

REQUIRED = {"model_type": "qwen3_5_text", "hidden_act": "silu", "attention_bias": False}

ALTERED = ("quantization_config", "text_config")
"""What makes a model of other weights, or of other parts, of a configuration."""


class ProofError(ValueError):
    """A directory of which nothing can be proved: it is no checkpoint, or one of another model."""


class Readable(Protocol):
    """What a proof reads of a checkpoint.

    Attributes:
        config: what config.json says.
        dtype: "float32" or "bfloat16".
        names: of the tensors.
    """

    config: dict[str, Any]
    dtype: str
    names: list[str]

    @property
    def sha256(self) -> str:
        """The hash of its tensors' files."""
        ...

    def __getitem__(self, name: str, /) -> np.ndarray:
        """A tensor by name, float64."""
        ...


class Checkpoint:
    """A checkpoint's configuration and tensors.

    Attributes:
        config: config.json.
        dtype: "float32" or "bfloat16".
        sha256: of model.safetensors.
    """

    def __init__(self, directory: str | Path) -> None:
        import torch
        from safetensors import SafetensorError, safe_open

        folder = Path(directory)
        self.config: dict[str, Any]
        self.config, base = _read_config(folder / "config.json")
        self.dtype: str = self.config["dtype"]
        weights = folder / "model.safetensors"
        try:
            with weights.open("rb") as file:
                self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            self._file = safe_open(weights, framework="pt")
            self.names = sorted(self._file.keys())
        except (OSError, SafetensorError) as error:
            raise ProofError(f"'{weights}': {error}") from None
        self._kind = getattr(torch, self.dtype)
        self._check_shapes(base)

    def _check_shapes(self, base: Base) -> None:
        """Check that every tensor which the model of the configuration has is there, in its shape."""
        for tensor in model_tensors(base, base.layer_types, base.hidden, base.vocabulary, tied=False):
            if tensor.name not in self.names:
                raise ProofError(f"no tensor '{tensor.name}'")
            shape = tuple(self._file.get_slice(tensor.name).get_shape())
            if shape != tensor.shape:
                raise ProofError(f"tensor '{tensor.name}' should be {tensor.shape}; it is {shape}")

    def __getitem__(self, name: str) -> np.ndarray:
        """A tensor by name.

        Raises:
            ProofError: there is none, or it is of another dtype or holds what is no number.
        """
        if name not in self.names:
            raise ProofError(f"no tensor '{name}'")
        tensor = self._file.get_tensor(name)
        if tensor.dtype != self._kind:
            raise ProofError(f"tensor '{name}' is {tensor.dtype}, not {self._kind}")
        found = tensor.double().numpy()
        if not np.isfinite(found).all():
            raise ProofError(f"tensor '{name}' holds what is no finite number")
        return found


def _read_config(path: Path) -> tuple[dict[str, Any], Base]:
    """The configuration with its defaults, and what it says of the sizes."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProofError(f"'{path}': {error}") from None
    if not isinstance(config, dict):
        raise ProofError(f"'{path}' is not the configuration of a model")
    _check_model(config, path)
    if config.get("dtype") not in ("float32", "bfloat16"):
        raise ProofError(f"'{path}' has dtype = {config.get('dtype')!r}")
    if config.get("linear_num_key_heads") != config.get("linear_num_value_heads"):
        raise ProofError("key and value heads differ in number")
    try:
        base = base_of(config, f"'{path}'")
    except MergeError as error:
        raise ProofError(str(error)) from None
    if base.tied:
        raise ProofError(f"'{path}' has tie_word_embeddings: what is proved is a head of its own")
    return {**DEFAULTS, **config, "layer_types": list(base.layer_types)}, base


def _check_model(config: dict[str, Any], path: Path) -> None:
    for name, value in REQUIRED.items():
        if config.get(name) != value:
            raise ProofError(f"'{path}' has {name} = {config.get(name)!r}; what is proved is for {value!r}")
    for name in ALTERED:
        if config.get(name) is not None:
            raise ProofError(f"'{path}' has a {name}: what is proved is for none")
