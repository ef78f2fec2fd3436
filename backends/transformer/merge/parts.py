"""A merged checkpoint taken apart: the compiled layers as a model of their own, and the base's text model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu.backends.transformer.merge.base import CONFIG, Base, MergeError, base_of
from qgpu.backends.transformer.merge.build import METADATA, TEXT_FOLDER, TEXT_NORMS
from qgpu.backends.transformer.merge.shapes import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    Role,
    TensorShape,
    model_tensors,
)
from qgpu.backends.transformer.merge.source import stored_tensors

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class MergedCheckpoint:
    """A merged checkpoint's directory, and where its parts are.

    Attributes:
        directory: the checkpoint.
        whole: sizes of the whole model.
        layers: how many layers are compiled; they come first.
        first_token: id of the machine's first token; those before are the base's.
        hidden: channels of the base; they come first.
        tied: whether the base's head is its embedding.
        factor: what the base's embedding and output projections are multiplied by, a power of two.
        files: the file of each tensor.
    """

    directory: Path
    whole: Base
    layers: int
    first_token: int
    hidden: int
    tied: bool
    factor: float
    files: Mapping[str, Path]

    @property
    def dtype(self) -> str:
        """The dtype of its tensors."""
        return self.whole.dtype

    @property
    def machine_tokens(self) -> int:
        """How many tokens the machine has."""
        return self.whole.vocabulary - self.first_token

    def text_config(self) -> dict[str, Any]:
        """The configuration of the base's text model."""
        kinds = self.whole.layer_types[self.layers :]
        return {
            **self.whole.config,
            "hidden_size": self.hidden,
            "num_hidden_layers": len(kinds),
            "layer_types": list(kinds),
            "vocab_size": self.first_token,
            "tie_word_embeddings": self.tied,
        }

    def text_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of the base's text model, bit for bit as the base has them in this dtype."""
        kinds = self.whole.layer_types[self.layers :]
        for shape in model_tensors(self.whole, kinds, self.hidden, self.first_token, self.tied):
            yield shape.name, self._text_tensor(shape)

    def _text_tensor(self, shape: TensorShape) -> torch.Tensor:
        if shape.role is Role.NORM:
            return _read(self.directory / TEXT_FOLDER / TEXT_NORMS, shape.name)
        name = _shifted(shape.name, self.layers)
        rows = shape.shape[0]
        if shape.role is Role.READS:
            tensor = _read(self.files[name], name, rows, self.hidden)
            return tensor / self.factor if shape.name == EMBEDDING else tensor
        tensor = _read(self.files[name], name, rows)
        return tensor / self.factor if shape.role is Role.WRITES else tensor

    def compiled_config(self, grouped: bool = True) -> dict[str, Any]:
        """The configuration of the compiled layers as a model, whose tokens are the machine's from 0 on.

        Without `grouped`, it has one value head a key head, and not those that the machine leaves empty.
        """
        config = {
            **self.whole.config,
            "num_hidden_layers": self.layers,
            "layer_types": list(self.whole.layer_types[: self.layers]),
            "vocab_size": self.machine_tokens,
            "tie_word_embeddings": False,
            **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
        }
        return config if grouped else {**config, "linear_num_value_heads": self.whole.key_heads}

    def compiled_names(self) -> list[str]:
        """The names of the compiled layers' tensors, as a model of their own."""
        kinds = self.whole.layer_types[: self.layers]
        return [t.name for t in model_tensors(self.whole, kinds, self.whole.hidden, 1, False)]

    def compiled_files(self) -> list[Path]:
        """All files that decide what the compiled layers are, config.json and qgpu.json the first ones."""
        weights = {self.files[name] for name in self.compiled_names()}
        return [self.directory / CONFIG, self.directory / METADATA, *sorted(weights)]

    def compiled_tensor(self, name: str, grouped: bool = True) -> torch.Tensor:
        """A tensor of the compiled layers; see `compiled_config`.

        Raises:
            KeyError: there is none of that name.
        """
        if name in (EMBEDDING, HEAD):
            return _read(self.files[name], name, first=self.first_token)
        tensor = _read(self.files[name], name)
        return tensor if grouped or name == FINAL_NORM else self._ungrouped(name, tensor)

    def _ungrouped(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor without the value heads that are empty: of each group of them the first is used."""
        import torch

        base = self.whole
        group = base.value_heads // base.key_heads
        if group == 1 or ".linear_attn." not in name or name.endswith(".norm.weight"):
            return tensor
        if name.endswith("out_proj.weight"):
            return tensor.unflatten(1, (base.key_heads, group, -1))[:, :, 0].flatten(1)
        keys = 2 * base.key_heads * base.key_dim if name.endswith(("qkv.weight", "conv1d.weight")) else 0
        values = tensor[keys:].unflatten(0, (base.key_heads, group, -1))[:, 0].flatten(0, 1)
        return torch.cat([tensor[:keys], values])


def open_merged_checkpoint(directory: str | Path) -> MergedCheckpoint:
    """Open a merged checkpoint.

    Raises:
        MergeError: it is none, or a file is missing.
    """
    folder = Path(directory)
    table = merged_table(folder)
    if table is None:
        raise MergeError(f"'{folder}' is no merged checkpoint: {METADATA} says of no base")
    path = folder / CONFIG
    try:
        whole = base_of(json.loads(path.read_text(encoding="utf-8")), str(path))
        return MergedCheckpoint(
            folder,
            whole,
            int(table["layers"]),
            int(table["first_token"]),
            int(table["hidden"]),
            bool(table["tied"]),
            float(table["text"]["factor"]),
            {name: file for name, (file, _) in stored_tensors(folder).items()},
        )
    except OSError as error:
        raise MergeError(f"'{path}': {error.strerror}") from None
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        if isinstance(error, MergeError):
            raise
        raise MergeError(f"'{folder}' is no merged checkpoint: {error}") from None


def merged_table(directory: str | Path) -> dict[str, Any] | None:
    """What qgpu.json says of a merge; None where the directory is no merged checkpoint."""
    try:
        content = json.loads((Path(directory) / METADATA).read_text(encoding="utf-8"))
        table = content.get("merged")
    except (OSError, ValueError, AttributeError):
        return None
    return table if isinstance(table, dict) else None


def _shifted(name: str, layers: int) -> str:
    """The name in the whole model of a tensor of the base's text model."""
    if not name.startswith("model.layers."):
        return name
    number, rest = name.removeprefix("model.layers.").split(".", 1)
    return f"model.layers.{int(number) + layers}.{rest}"


def _read(
    path: Path, name: str, last: int | None = None, columns: int | None = None, first: int = 0
) -> torch.Tensor:
    """Rows `first` to `last` of a tensor, and of these the first `columns`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            rows = file.get_slice(name)
            wanted = rows[first:last] if columns is None else rows[first:last, :columns]
            return wanted.clone()
    except (OSError, SafetensorError) as error:
        raise MergeError(f"cannot read '{path}': {error}") from error
