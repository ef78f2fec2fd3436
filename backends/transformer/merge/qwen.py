"""Qwen's part of a merged model: its tensors in the wider stream, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qgpu.backends.transformer.merge.plan import MergePlan
from qgpu.backends.transformer.merge.shapes import EMBEDDING, FINAL_NORM, HEAD, Role, TensorShape
from qgpu.backends.transformer.merge.source import BaseTensors
from qgpu.backends.transformer.merge.stream import INERT, TEXT_OFF, folded_norm

if TYPE_CHECKING:
    import torch

CLOSED = (
    "linear_attn.in_proj_z.weight",
    "linear_attn.in_proj_a.weight",
    "linear_attn.in_proj_b.weight",
    "mlp.gate_proj.weight",
)
"""Projections whose rows are all gates: the machine's constant closes them."""


@dataclass(frozen=True)
class QwenPart:
    """Makes the base's tensors for the wider stream, in the result's dtype."""

    plan: MergePlan
    base: BaseTensors

    def blocks(self, tensor: TensorShape, name: str) -> Iterator[torch.Tensor]:
        """The rows of a tensor of one of Qwen's layers.

        Args:
            tensor: the tensor of the result.
            name: its name in the base.
        """
        maker = {
            Role.READS: self._reading,
            Role.WRITES: self._writing,
            Role.NORM: self._norm,
            Role.INSIDE: self._as_it_is,
        }
        return maker[tensor.role](name)

    def embedding(self) -> Iterator[torch.Tensor]:
        """The rows of text tokens: scaled, and marked by the flags."""
        plan = self.plan
        flag = plan.base.hidden + plan.flag
        for block in self.base.blocks(EMBEDDING):
            wide = self._widened(block)
            wide[:, : plan.base.hidden] *= plan.scale.factor
            for number, value in enumerate(plan.scale.flags):
                wide[:, flag + number] = value
            yield wide

    def head(self) -> Iterator[torch.Tensor]:
        """The head's rows of text tokens, which the machine's constant keeps off."""
        for block in self.base.blocks(EMBEDDING if self.plan.base.tied else HEAD):
            wide = self._widened(block)
            wide[:, self.plan.base.hidden] = TEXT_OFF
            yield wide

    def final_norm(self) -> torch.Tensor:
        """The final norm on the base's channels, float64."""
        return self._folded(FINAL_NORM)

    def _reading(self, name: str) -> Iterator[torch.Tensor]:
        place = self.plan.base.hidden
        first = 0
        for block in self.base.blocks(name):
            wide = self._widened(block)
            if name.endswith(CLOSED):
                wide[:, place] = INERT
            elif name.endswith("self_attn.q_proj.weight"):
                wide[self._output_gates(first, len(block)), place] = INERT
            first += len(block)
            yield wide

    def _output_gates(self, first: int, count: int) -> torch.Tensor:
        """Which of `count` rows from `first` on are gates: a head has its query's rows, then its gate's."""
        import torch

        dim = self.plan.base.head_dim
        return torch.arange(first, first + count) % (2 * dim) >= dim

    def _writing(self, name: str) -> Iterator[torch.Tensor]:
        import torch

        for block in self.base.blocks(name):
            yield block.to(self._dtype) * self.plan.scale.factor
        columns = self.base.shapes[name].shape[1]
        yield torch.zeros(self.plan.width, columns, dtype=self._dtype)

    def _norm(self, name: str) -> Iterator[torch.Tensor]:
        """The constant comes out as 1; nothing else of the machine's is seen."""
        import torch

        own = torch.full((self.plan.width,), -1.0, dtype=torch.float64)
        own[0] += 1 / self.plan.layout.amplitudes[0]
        yield torch.cat([self._folded(name), own]).to(self._dtype)

    def _as_it_is(self, name: str) -> Iterator[torch.Tensor]:
        for block in self.base.blocks(name):
            yield block.to(self._dtype)

    def _folded(self, name: str) -> torch.Tensor:
        import torch

        # The base's own rounding comes first: it is part of what the base computes in this dtype.
        weight = self.base.whole(name).to(self._dtype).double().numpy()
        return torch.from_numpy(folded_norm(weight, self.plan.scale.gain))

    def _widened(self, block: torch.Tensor) -> torch.Tensor:
        import torch

        wide = torch.zeros(len(block), self.plan.hidden, dtype=self._dtype)
        wide[:, : self.plan.base.hidden] = block
        return wide

    @property
    def _dtype(self) -> torch.dtype:
        import torch

        return getattr(torch, self.plan.dtype)
