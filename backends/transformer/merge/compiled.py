"""The compiled part of a merged model: the machine's layers in the shape of the base's, and its tokens'
rows.
"""

from __future__ import annotations

import numpy as np

from qgpu.backends.transformer.emit import Emitter
from qgpu.backends.transformer.merge.plan import MergePlan
from qgpu.backends.transformer.merge.shapes import Role, TensorShape
from qgpu.backends.transformer.merge.stream import FLAG_BITS, MACHINE_OFF_BITS

FLAGGED = ("linear_attn.in_proj_qkv.weight", "linear_attn.in_proj_z.weight", "linear_attn.in_proj_b.weight")
"""The projections that the flag turns off on text; the neurons' `up` reads a constant alone."""


class CompiledPart:
    """Makes float32 tensors of the compiled part."""

    def __init__(self, plan: MergePlan) -> None:
        self.plan = plan
        self._emitter = Emitter(plan.layout, plan.dtype)
        self.largest_row = 0.0
        """Largest Euclidean norm of a row that the flag turns off, of the layers made so far."""

    def layer(self, number: int) -> dict[str, np.ndarray]:
        """The tensors of a layer, by their names in it."""
        norm = self._emitter.norm()
        tensors = {
            "input_layernorm.weight": norm,
            **self._spread(self._emitter.heads(number)),
            "post_attention_layernorm.weight": norm,
            **self._emitter.neurons(number),
        }
        for name in FLAGGED:
            rows = np.linalg.norm(tensors[name], axis=1)
            self.largest_row = max(self.largest_row, float(rows.max(initial=0.0)))
            tensors[name][:, self.plan.flag] = -(2.0**FLAG_BITS)
        return tensors

    def embedding(self) -> np.ndarray:
        """The rows of the machine's tokens, [tokens, hidden]."""
        return self.in_stream(self._emitter.embedding(), 1)

    def head(self) -> np.ndarray:
        """The rows of the machine's tokens, [tokens, hidden]; the flag keeps them off on text."""
        table = self._emitter.head()
        table[:, self.plan.flag] = -(2.0**MACHINE_OFF_BITS)
        return self.in_stream(table, 1)

    def final_norm(self) -> np.ndarray:
        """The final norm's weights; those of the base's channels are for the base to fill in."""
        return self.in_stream(self._emitter.norm(), 0)

    def in_stream(self, tensor: np.ndarray, axis: int) -> np.ndarray:
        """A tensor whose axis has the layout's places, with the stream's channels instead: the base's come
        first."""
        return np.roll(tensor, -self.plan.width, axis)

    def placed(self, name: str, tensor: np.ndarray, shape: TensorShape) -> np.ndarray:
        """A layer's tensor over the stream's channels."""
        axes = {Role.READS: 1, Role.WRITES: 0, Role.NORM: 0}
        placed = self.in_stream(tensor, axes[shape.role]) if shape.role in axes else tensor
        if placed.shape != shape.shape:
            raise ValueError(f"{name} is {placed.shape}, not {shape.shape}")
        return placed

    def _spread(self, mixer: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Give each value head the first of the base's value heads that have its key head; the others get
        nothing.
        """
        base = self.plan.base
        group = base.value_heads // base.key_heads
        if group == 1:
            return mixer
        keys, values = 2 * base.key_heads * base.key_dim, base.key_heads * base.value_dim
        spread = dict(mixer)
        for name in ("linear_attn.in_proj_qkv.weight", "linear_attn.conv1d.weight"):
            wide = _grouped(mixer[name][keys:], base.key_heads, group)
            spread[name] = np.concatenate([mixer[name][:keys], wide])
        for name in ("linear_attn.in_proj_z.weight", "linear_attn.in_proj_b.weight"):
            spread[name] = _grouped(mixer[name], base.key_heads, group)
        spread["linear_attn.in_proj_a.weight"] = _grouped(
            mixer["linear_attn.in_proj_a.weight"], base.key_heads, group
        )
        for name in ("linear_attn.dt_bias", "linear_attn.A_log"):
            spread[name] = np.repeat(mixer[name], group)
        out = mixer["linear_attn.out_proj.weight"]
        assert out.shape[1] == values
        spread["linear_attn.out_proj.weight"] = _grouped(out.T, base.key_heads, group).T
        return spread


def _grouped(rows: np.ndarray, heads: int, group: int) -> np.ndarray:
    """Rows of `heads` heads, [heads * n, ...], as those of `group` times as many: each is followed by empty
    ones.
    """
    apart = rows.reshape(heads, 1, -1, *rows.shape[1:])
    wide = np.zeros((heads, group, *apart.shape[2:]), rows.dtype)
    wide[:, :1] = apart
    return wide.reshape(-1, *rows.shape[1:])
