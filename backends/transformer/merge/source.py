"""The base's tensors: read by name, a few rows at a time, whatever the class and however many the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu.backends.transformer.merge.base import Base, MergeError
from qgpu.backends.transformer.merge.shapes import HEAD, TensorShape, model_tensors

if TYPE_CHECKING:
    import torch

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PREFIXES = ("model.", "model.language_model.")
"""What names begin with in a checkpoint of the text class, and in one of the vision class."""

BLOCK_BYTES = 1 << 25
"""About how much is held of a tensor at once."""


@dataclass(frozen=True)
class BaseTensors:
    """The tensors of the base's text model, under the names of the text class.

    Attributes:
        files: the file of each stored tensor, by its stored name.
        stored: the stored name of each tensor.
        shapes: the text model's tensors.
    """

    files: dict[str, Path]
    stored: dict[str, str]
    shapes: dict[str, TensorShape]

    def rows(self, name: str, first: int, last: int) -> torch.Tensor:
        """Rows `first` to `last` of a tensor, as it is stored.

        The file is opened for each read, since pages of a mapping count as memory as long as it is open.
        """
        from safetensors import SafetensorError, safe_open

        stored = self.stored[name]
        try:
            with safe_open(self.files[stored], framework="pt") as file:
                return file.get_slice(stored)[first:last].clone()
        except (OSError, SafetensorError) as error:
            raise MergeError(f"cannot read '{self.files[stored]}': {error}") from error

    def whole(self, name: str) -> torch.Tensor:
        """A tensor as it is stored."""
        return self.rows(name, 0, self.shapes[name].shape[0])

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """The rows of a tensor, some at a time."""
        shape = self.shapes[name].shape
        rows = max(1, BLOCK_BYTES // 4 * shape[0] // self.shapes[name].numbers)
        for first in range(0, shape[0], rows):
            yield self.rows(name, first, min(first + rows, shape[0]))


def open_base(directory: str | Path, base: Base) -> BaseTensors:
    """Find the tensors of a base's text model; those of vision and of multi-token prediction are left out.

    Raises:
        MergeError: a file or a tensor is missing, or a shape is not the configuration's.
    """
    folder = Path(directory)
    found = stored_tensors(folder)
    prefix = max(PREFIXES, key=lambda p: sum(name.startswith(f"{p}layers.") for name in found))
    shapes = list(model_tensors(base, base.layer_types, base.hidden, base.vocabulary, base.tied))
    stored = {t.name: _stored(t.name, prefix) for t in shapes}
    for tensor in shapes:
        name = stored[tensor.name]
        if name not in found:
            raise MergeError(f"'{folder}' has no tensor {name}")
        if (size := found[name][1]) != tensor.shape:
            raise MergeError(f"'{folder}': {name} is {size}, the configuration says {tensor.shape}")
    files = {name: path for name, (path, _) in found.items()}
    return BaseTensors(files, stored, {t.name: t for t in shapes})


def stored_tensors(folder: Path) -> dict[str, tuple[Path, tuple[int, ...]]]:
    """The file and the shape of every tensor of a checkpoint, of one file or several.

    Raises:
        MergeError: a file is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    found: dict[str, tuple[Path, tuple[int, ...]]] = {}
    for path in _files(folder):
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - no mapping, though it has keys
                    found[name] = path, tuple(file.get_slice(name).get_shape())
        except (OSError, SafetensorError) as error:
            raise MergeError(f"cannot read '{path}': {error}") from error
    return found


def _stored(name: str, prefix: str) -> str:
    return name if name == HEAD else prefix + name.removeprefix("model.")


def _files(folder: Path) -> list[Path]:
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    index: Any
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        return [folder / name for name in sorted(set(index["weight_map"].values()))]
    except OSError:
        raise MergeError(f"'{folder}' has neither {SINGLE} nor {INDEX}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MergeError(f"'{folder / INDEX}' is no index of tensors") from None
