"""Compare a merged model with its base on text: how far the distributions of the next token are apart.

The base is compared with itself too, in the ways in which nobody would call the results different: decode and
prefill, float32 and bfloat16, and its channels in another order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu.backends.transformer.merge.base import Base, read_base
from qgpu.backends.transformer.merge.parts import MergedCheckpoint
from qgpu.backends.transformer.merge.shapes import Role
from qgpu.backends.transformer.merge.source import open_base
from qgpu.runtime.stock import cache_argument, load_checkpoint
from qgpu.runtime.text_model import load_stock

if TYPE_CHECKING:
    import torch

CHUNK = 256
"""Tokens of one forward pass."""

ROWS = 32
"""Positions whose distributions are held in float64 at once."""

PERMUTATION_SEED = 1

Logits = Callable[[Sequence[int]], "Iterator[torch.Tensor]"]
"""Gives the logits of a text's positions in order, some at a time, [positions, vocabulary]."""


@dataclass(frozen=True)
class Distance:
    """How far one model's distributions are from another's, over the positions of a text.

    Attributes:
        mean, largest: of KL(first || second), in nats, over the whole vocabulary of the second.
        same_argmax: share of the positions with the same most likely token.
        positions: how many.
        added: largest logit of a token that the first model lacks, less the largest of all; None where
            there is
            no such token.
    """

    mean: float
    largest: float
    same_argmax: float
    positions: int
    added: float | None


@dataclass(frozen=True)
class Comparison:
    """A pair of models and how far apart they are."""

    name: str
    distance: Distance


def compare_text(
    base: Path, merged: MergedCheckpoint, tokens: Sequence[int], dtype: str, decoded: int, device: str = "cpu"
) -> Iterator[Comparison]:
    """Yield how far a merged model is from its base on a text, and how far the base is from itself.

    Args:
        base: the base's directory.
        dtype: of both; the merged checkpoint is one of it.
        decoded: how many tokens the base reads one by one.

    Raises:
        MergeError, EngineError: a model cannot be loaded.
    """
    source = _BaseModels(base, read_base(base), device)
    reference = source.load(dtype)
    other = "float32" if dtype == "bfloat16" else "bfloat16"
    whole = load_checkpoint(merged.directory, dtype).to(device)
    yield Comparison("merged, as one model", distance(_chunks(reference), _chunks(whole), tokens))
    del whole
    driven = load_stock(merged.text_config(), dict(merged.text_tensors()), dtype, device)
    yield Comparison("merged, driven by qgpu", distance(_chunks(reference), _chunks(driven), tokens))
    del driven
    start = tokens[:decoded]
    yield Comparison("base: prefill, decode", distance(_chunks(reference), _chunks(reference, 1), start))
    permuted = source.load(dtype, permuted=True)
    yield Comparison("base: its channels permuted", distance(_chunks(reference), _chunks(permuted), tokens))
    del permuted
    yield Comparison(
        f"base: {dtype}, {other}", distance(_chunks(reference), _chunks(source.load(other)), tokens)
    )


@dataclass(frozen=True)
class _BaseModels:
    """Loads the text model of a base, of the text class or the vision class."""

    directory: Path
    base: Base
    device: str

    def load(self, dtype: str, permuted: bool = False) -> Any:
        import torch

        tensors = open_base(self.directory, self.base)
        named = {name: tensors.whole(name).to(getattr(torch, dtype)) for name in tensors.shapes}
        if permuted:
            named = {name: self._permuted(tensors.shapes[name].role, t) for name, t in named.items()}
        return load_stock(self.base.config, named, dtype, self.device)

    def _permuted(self, role: Role, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor for a stream whose channels are in another order, always the same one."""
        import torch

        if role is Role.INSIDE:
            return tensor
        order = torch.randperm(self.base.hidden, generator=torch.Generator().manual_seed(PERMUTATION_SEED))
        return tensor[:, order] if role is Role.READS else tensor[order]


def _chunks(model: Any, chunk: int = CHUNK) -> Logits:
    """Run a model over a text, so many tokens a pass."""

    def logits(tokens: Sequence[int]) -> Iterator[torch.Tensor]:
        import torch
        import transformers

        given: Mapping[str, Any] = {cache_argument(model): transformers.DynamicCache(config=model.config)}
        for first in range(0, len(tokens), chunk):
            ids = torch.tensor([tokens[first : first + chunk]], device=model.device)
            with torch.inference_mode():
                yield model(input_ids=ids, use_cache=True, **given).logits[0]

    return logits


def distance(first: Logits, second: Logits, tokens: Sequence[int]) -> Distance:
    """Compare two models on a text; the second may have more tokens in its vocabulary."""
    total, largest, same, added = 0.0, 0.0, 0, None
    for one, other in _aligned(first(tokens), second(tokens)):
        size = one.shape[-1]
        p, q = one.double().log_softmax(-1), other.double().log_softmax(-1)
        divergence = (p.exp() * (p - q[:, :size])).sum(-1)
        total += float(divergence.sum())
        largest = max(largest, float(divergence.max()))
        same += int((one.argmax(-1) == other.argmax(-1)).sum())
        if other.shape[-1] > size:
            gap = float((other[:, size:].double().max(-1).values - other.double().max(-1).values).max())
            added = gap if added is None else max(added, gap)
    count = len(tokens)
    return Distance(total / count, largest, same / count, count, added)


def _aligned(
    first: Iterator[torch.Tensor], second: Iterator[torch.Tensor]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Rows of both, at most ROWS at a time, whatever the lengths in which they come."""
    import torch

    pairs = zip(_rows(first), _rows(second), strict=True)
    while some := list(itertools.islice(pairs, ROWS)):
        ones, others = zip(*some, strict=True)
        yield torch.stack(ones), torch.stack(others)


def _rows(blocks: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
    for block in blocks:
        yield from block
