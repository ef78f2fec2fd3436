"""All tensors of a merged model, each as blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from qgpu.backends.transformer.merge.compiled import CompiledPart
from qgpu.backends.transformer.merge.plan import MergePlan
from qgpu.backends.transformer.merge.qwen import QwenPart
from qgpu.backends.transformer.merge.shapes import EMBEDDING, FINAL_NORM, HEAD, TensorShape
from qgpu.backends.transformer.merge.source import BaseTensors
from qgpu.backends.transformer.merge.stream import FLAG_BITS, check_flag
from qgpu.backends.transformer.rounding import in_dtype

if TYPE_CHECKING:
    import torch


class MergedTensors:
    """Makes the tensors of a plan, to be asked for in the order of the plan."""

    def __init__(self, plan: MergePlan, base: BaseTensors) -> None:
        self.plan = plan
        self._qwen = QwenPart(plan, base)
        self._compiled = CompiledPart(plan)
        self._layer: tuple[int, dict[str, np.ndarray]] = (-1, {})
        self._largest_text = 0.0

    @property
    def largest(self) -> tuple[float, float]:
        """Euclidean norms of the largest compiled row that the flag turns off, and of the largest text
        token.
        """
        return self._compiled.largest_row, self._largest_text

    @property
    def margin(self) -> float:
        """How many times the flag outweighs the product of the two."""
        row, text = self.largest
        return self.plan.scale.flags[0] * 2.0**FLAG_BITS / max(row * text, 1e-30)

    def blocks(self, tensor: TensorShape) -> Iterable[torch.Tensor]:
        """The rows of a tensor, in the plan's dtype.

        Raises:
            MergeError: the base cannot be read, or a text token is too large for the flag.
        """
        ends = {EMBEDDING: self._embedding, FINAL_NORM: self._final_norm, HEAD: self._head}
        if tensor.name in ends:
            return ends[tensor.name]()
        number, name = _layer_of(tensor.name)
        if number < self.plan.layout.layers:
            return self._compiled_tensor(number, name, tensor)
        number -= self.plan.layout.layers
        return self._qwen.blocks(tensor, f"model.layers.{number}.{name}")

    def _compiled_tensor(self, number: int, name: str, shape: TensorShape) -> Iterator[torch.Tensor]:
        if self._layer[0] != number:
            self._layer = (-1, {})
            self._layer = (number, self._compiled.layer(number))
            check_flag(self.plan.scale, self._largest_text, self._compiled.largest_row)
        tensor = self._compiled.placed(name, self._layer[1][name], shape)
        yield in_dtype(shape.name, tensor, self.plan.dtype)

    def _embedding(self) -> Iterator[torch.Tensor]:
        for block in self._qwen.embedding():
            self._largest_text = max(self._largest_text, float(block.float().norm(dim=1).max()))
            yield block
        yield in_dtype(EMBEDDING, self._compiled.embedding(), self.plan.dtype)

    def _final_norm(self) -> Iterator[torch.Tensor]:
        weight = self._compiled.final_norm().astype(np.float64)
        weight[: self.plan.base.hidden] = self._qwen.final_norm().numpy()
        yield in_dtype(FINAL_NORM, weight.astype(np.float32), self.plan.dtype)

    def _head(self) -> Iterator[torch.Tensor]:
        self._layer = (-1, {})
        yield from self._qwen.head()
        yield in_dtype(HEAD, self._compiled.head(), self.plan.dtype)


def _layer_of(name: str) -> tuple[int, str]:
    """The layer's number in a tensor's name, and the name in the layer."""
    number, rest = name.removeprefix("model.layers.").split(".", 1)
    return int(number), rest
