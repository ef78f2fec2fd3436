"""The compiled layers of a merged checkpoint as a checkpoint of their own, for the machine's tokens."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from qgpu.backends.prover.merged.weights import Weights
from qgpu.backends.prover.projection import Fail
from qgpu.backends.transformer.merge.shapes import EMBEDDING, FINAL_NORM, HEAD
from qgpu.backends.transformer.numerics import NORM_BITS

READING = ("in_proj_qkv.weight", "in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight")
READING_NEURONS = ("gate_proj.weight", "up_proj.weight")
OUTPUT = "linear_attn.out_proj.weight"


class CompiledView:
    """What the prover reads of a checkpoint, with the machine's tokens as the vocabulary.

    Two things are left out, both of no consequence for the machine's tokens. Channels that none of its tokens
    has, and that no compiled layer writes to, are always 0: nobody reads them here (text has its flag in
    one). And where several value heads share a key head, the others than the first: `check_idle` shows that
    they add nothing.

    Attributes:
        config: what the prover asks of config.json.
        names: the names of the tensors.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        parts, whole = weights.parts, weights.parts.whole
        self.dtype = parts.dtype
        self.config: dict[str, Any] = {
            **parts.compiled_config(grouped=False),
            "hidden_size": whole.hidden,
            "rms_norm_eps": whole.eps,
            "linear_num_key_heads": whole.key_heads,
            "linear_key_head_dim": whole.key_dim,
            "linear_value_head_dim": whole.value_dim,
            "linear_conv_kernel_dim": weights.shapes["model.layers.0.linear_attn.conv1d.weight"][2],
        }
        self.names = parts.compiled_names()

    @property
    def sha256(self) -> str:
        """The hash of all files of tensors."""
        return self._weights.sha256()

    @cached_property
    def absent(self) -> np.ndarray:
        """Bool [hidden]: channels that are 0 for the machine's tokens, after every compiled layer."""
        weights, first = self._weights, self._weights.parts.first_token
        used = np.zeros(weights.parts.whole.hidden, bool)
        for _, block in weights.blocks(EMBEDDING, first):
            used |= (block != 0).any(axis=0)
        for layer in weights.compiled:
            for part in ("linear_attn.out_proj", "mlp.down_proj"):
                for start, block in weights.blocks(f"model.layers.{layer}.{part}.weight"):
                    used[start : start + len(block)] |= (block != 0).any(axis=1)
        return ~used

    def __getitem__(self, name: str) -> np.ndarray:
        """A tensor by name, float64."""
        found = self._read(name)
        if name == FINAL_NORM:
            # The base's channels have the base's weights; what no logit reads may be scaled by anything.
            own = np.arange(len(found)) < self._weights.parts.hidden
            found[own & ~self._read_by_logits] = 2.0**NORM_BITS - 1
        elif name == HEAD or name.endswith((*READING, *READING_NEURONS)):
            found[:, self.absent] = 0.0
        return found

    def _read(self, name: str) -> np.ndarray:
        weights, group = self._weights, self._group
        if name in (EMBEDDING, HEAD):
            rows = [block for _, block in weights.blocks(name, weights.parts.first_token)]
            return np.concatenate(rows)
        found = weights[name]
        if group == 1 or ".linear_attn." not in name or name.endswith(".norm.weight"):
            return found
        if name.endswith(OUTPUT):
            return found[:, self._kept(found.shape[1])]
        return found[self._kept(len(found), self._keys(name))]

    @cached_property
    def _read_by_logits(self) -> np.ndarray:
        return (self[HEAD] != 0).any(axis=0)

    @property
    def _group(self) -> int:
        return self._weights.parts.whole.value_heads // self._weights.parts.whole.key_heads

    def _keys(self, name: str) -> int:
        """The rows of a tensor that are of queries and keys."""
        whole = self._weights.parts.whole
        return 2 * whole.key_heads * whole.key_dim if name.endswith(("qkv.weight", "conv1d.weight")) else 0

    def _kept(self, rows: int, keys: int = 0) -> np.ndarray:
        """The rows of queries, of keys, and of the first value head of each key head, by their numbers."""
        heads = np.arange(keys, rows).reshape(self._weights.parts.whole.key_heads, self._group, -1)
        return np.concatenate([np.arange(keys), heads[:, 0].reshape(-1)])

    def place(self, name: str, row: int) -> int:
        """The row of a tensor in the checkpoint, by its number in the view."""
        if name in (EMBEDDING, HEAD):
            return self._weights.parts.first_token + row
        if self._group == 1 or ".linear_attn." not in name or name.endswith(("norm.weight", OUTPUT)):
            return row
        return int(self._kept(self._weights.shapes[name][0], self._keys(name))[row])

    def value_column(self, column: int) -> int:
        """The column of an output projection in the checkpoint, by its number in the view."""
        whole = self._weights.parts.whole
        return int(self._kept(whole.value_heads * whole.value_dim)[column])

    def check_idle(self, fail: Fail) -> None:
        """Show that the value heads that are left out put out nothing on the machine's tokens.

        Their projections are 0 there: so are their values, the gates, and what they write. Nor does their
        convolution make anything large of what text has there.
        """
        if self._group == 1:
            return
        for layer in self._weights.compiled:
            prefix = f"model.layers.{layer}.linear_attn"
            name = f"{prefix}.conv1d.weight"
            for row in np.flatnonzero((np.abs(self._weights[name]) > 1).any(axis=(1, 2))).tolist():
                fail(name, row, "the convolution has a weight above 1")
            for part in ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"):
                name = f"{prefix}.{part}.weight"
                for start, block in self._weights.blocks(name):
                    rows = start + np.flatnonzero((block[:, ~self.absent] != 0).any(axis=1))
                    kept = self._kept(self._weights.shapes[name][0], self._keys(name))
                    for row in np.setdiff1d(rows, kept).tolist():
                        fail(name, row, "a value head that is not the first of its key head reads something")
