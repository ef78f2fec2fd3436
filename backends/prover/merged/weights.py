"""Read a merged checkpoint: its tensors as float64, whole or a block of rows at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qgpu.backends.prover.checkpoint import REQUIRED, ProofError
from qgpu.backends.transformer.merge.base import CONFIG, MergeError
from qgpu.backends.transformer.merge.parts import MergedCheckpoint, open_merged_checkpoint
from qgpu.backends.transformer.merge.shapes import model_tensors
from qgpu.backends.transformer.merge.source import stored_tensors

BLOCK_NUMBERS = 1 << 22
"""About how many numbers of a tensor are held at once."""

DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Weights:
    """The tensors of a merged checkpoint.

    Attributes:
        parts: where its parts are, as qgpu.json says it. Nothing is proved by what it says: a wrong statement
            leads to failures.
        shapes: the shape of each tensor.
    """

    parts: MergedCheckpoint
    shapes: dict[str, tuple[int, ...]]

    @property
    def compiled(self) -> range:
        """The numbers of the compiled layers."""
        return range(self.parts.layers)

    @property
    def own(self) -> range:
        """The numbers of the base's layers."""
        return range(self.parts.layers, len(self.parts.whole.layer_types))

    def __getitem__(self, name: str) -> np.ndarray:
        """A tensor by name."""
        return np.concatenate([block for _, block in self.blocks(name)])

    def blocks(self, name: str, first: int = 0, last: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Rows `first` to `last` of a tensor, some at a time, each with the number of its first one.

        Raises:
            ProofError: it is of another dtype, holds what is no number, or cannot be read.
        """
        shape = self.shapes[name]
        end = shape[0] if last is None else last
        rows = max(1, BLOCK_NUMBERS * shape[0] // max(1, int(np.prod(shape))))
        for start in range(first, end, rows):
            yield start, self._rows(name, start, min(start + rows, end))

    def _rows(self, name: str, first: int, last: int) -> np.ndarray:
        import torch
        from safetensors import SafetensorError, safe_open

        path = self.parts.files[name]
        try:
            # Opened for each read: pages of a mapping count as memory as long as it is open.
            with safe_open(path, framework="pt") as file:
                tensor = file.get_slice(name)[first:last].clone()
        except (OSError, SafetensorError) as error:
            raise ProofError(f"'{path}': {error}") from None
        if tensor.dtype != getattr(torch, self.parts.dtype):
            raise ProofError(f"tensor '{name}' is {tensor.dtype}, not {self.parts.dtype}")
        found = tensor.double().numpy()
        if not np.isfinite(found).all():
            raise ProofError(f"tensor '{name}' holds what is no finite number")
        return found

    def sha256(self) -> str:
        """The hash of the files of tensors, one after another in the order of their names."""
        digest = hashlib.sha256()
        for path in sorted(set(self.parts.files.values())):
            with path.open("rb") as file:
                while block := file.read(1 << 22):
                    digest.update(block)
        return digest.hexdigest()


def open_weights(directory: str | Path) -> Weights:
    """Open a merged checkpoint.

    Raises:
        ProofError: it is none, or its tensors are not those of its configuration.
    """
    folder = Path(directory)
    try:
        parts = open_merged_checkpoint(folder)
        shapes = {name: shape for name, (_, shape) in stored_tensors(folder).items()}
    except MergeError as error:
        raise ProofError(str(error)) from None
    _check_config(folder, parts)
    whole = parts.whole
    for tensor in model_tensors(whole, whole.layer_types, whole.hidden, whole.vocabulary, tied=False):
        if shapes.get(tensor.name) != tensor.shape:
            found = "there is none" if tensor.name not in shapes else f"it is {shapes[tensor.name]}"
            raise ProofError(f"tensor '{tensor.name}' should be {tensor.shape}; {found}")
    return Weights(parts, shapes)


def _check_config(folder: Path, parts: MergedCheckpoint) -> None:
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    for name, value in {**REQUIRED, "tie_word_embeddings": False}.items():
        if config.get(name, value) != value:
            raise ProofError(f"'{folder / CONFIG}' has {name} = {config[name]!r}; the proof is for {value!r}")
    whole = parts.whole
    if whole.dtype not in DTYPES:
        raise ProofError(f"'{folder / CONFIG}' has dtype = {whole.dtype!r}")
    sizes = (
        ("layers", parts.layers, len(whole.layer_types)),
        ("first_token", parts.first_token, whole.vocabulary),
        ("hidden", parts.hidden, whole.hidden),
    )
    for name, value, limit in sizes:
        if not 0 < value < limit:
            raise ProofError(f"'{folder}' says of a merge that {name} is {value}; it has {limit}")
    kinds = whole.layer_types[: parts.layers]
    if "full_attention" in kinds:
        raise ProofError(
            f"layer {kinds.index('full_attention')} is said to be compiled, and is full attention"
        )
    if whole.value_heads % whole.key_heads:
        raise ProofError(f"{whole.value_heads} value heads are no multiple of {whole.key_heads} key heads")
