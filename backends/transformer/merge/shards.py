"""Safetensors files, written a block of rows at a time.

The format (github.com/huggingface/safetensors): the length of the header in 8 bytes, little-endian; the
header, JSON with the dtype, the shape and the place of each tensor; the tensors, row-major, one after
another. The library's own writer takes all tensors of a file at once; here the header is known before the
first tensor is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu.backends.transformer.merge.plan import ITEM_BYTES
from qgpu.backends.transformer.merge.shapes import TensorShape
from qgpu.backends.transformer.merge.source import INDEX

if TYPE_CHECKING:
    import torch

SHARD_BYTES = 2 << 30
"""A file ends before the tensor with which it would be larger, unless that is its first."""

DTYPE_NAMES = {"float32": "F32", "bfloat16": "BF16"}

Blocks = Callable[[TensorShape], Iterable["torch.Tensor"]]
"""Gives the rows of a tensor, in the dtype of the file."""


@dataclass(frozen=True)
class Shard:
    """A file and what lies in it."""

    name: str
    tensors: tuple[TensorShape, ...]


def shards(tensors: Sequence[TensorShape], dtype: str, limit: int = SHARD_BYTES) -> list[Shard]:
    """Distribute tensors over files, in their order."""
    groups: list[list[TensorShape]] = [[]]
    filled = 0
    for tensor in tensors:
        size = tensor.numbers * ITEM_BYTES[dtype]
        if groups[-1] and filled + size > limit:
            groups.append([])
            filled = 0
        groups[-1].append(tensor)
        filled += size
    count = len(groups)
    return [
        Shard(f"model-{number:05}-of-{count:05}.safetensors", tuple(group))
        for number, group in enumerate(groups, 1)
    ]


def write_shards(
    folder: Path, parts: Sequence[Shard], dtype: str, blocks: Blocks, written: Callable[[int], None]
) -> None:
    """Write files of tensors and their index into a folder.

    Args:
        blocks: gives each tensor's rows.
        written: told of the bytes, block by block.

    Raises:
        ValueError: the rows of a tensor are not as many as its shape says (an error of the merge).
    """
    for shard in parts:
        with (folder / shard.name).open("wb") as file:
            file.write(_header(shard.tensors, dtype))
            for tensor in shard.tensors:
                for data in _bytes(tensor, dtype, blocks(tensor)):
                    file.write(data)
                    written(len(data))
    total = sum(t.numbers for shard in parts for t in shard.tensors) * ITEM_BYTES[dtype]
    weight_map = {tensor.name: shard.name for shard in parts for tensor in shard.tensors}
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _header(tensors: Sequence[TensorShape], dtype: str) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for tensor in tensors:
        end = place + tensor.numbers * ITEM_BYTES[dtype]
        header[tensor.name] = {
            "dtype": DTYPE_NAMES[dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _bytes(tensor: TensorShape, dtype: str, rows: Iterable[torch.Tensor]) -> Iterator[memoryview]:
    import torch

    missing = tensor.numbers
    for block in rows:
        if block.dtype != getattr(torch, dtype) or block.shape[1:] != tensor.shape[1:]:
            raise ValueError(f"{tensor.name}: a block of {block.dtype} {tuple(block.shape)}")
        missing -= block.numel()
        if block.numel():
            yield block.contiguous().view(torch.uint8).reshape(-1).numpy().data
    if missing:
        raise ValueError(f"{tensor.name}: {missing} numbers are missing")
