"""On the machine's tokens every layer of the base adds exactly 0, and its states keep their bits.

The machine's constant closes the gates: silu is exactly 0 in neurons and reads, sigmoid in writes and in
attention's output, and softplus in a decay, whose exponential is then exactly 1. Each gate is bounded from
above by what its row makes of all that the stream can hold after the compiled layers. All else has to be
finite: 0 times a finite number is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qgpu.backends.prover.merged.bounds import CLOSED, FINITE, Box, normalised_box
from qgpu.backends.prover.merged.weights import Weights
from qgpu.backends.prover.projection import Fail
from qgpu.backends.prover.stream import Stream

LARGEST_DECAY = 60.0
"""exp(A_log) is finite up to this."""

NOT_FINITE = "may not be finite on a token of the machine"


@dataclass
class OwnLayers:
    """Proves the base's layers.

    Attributes:
        stream: what the machine's tokens have after the compiled layers.
        silent: bool [hidden]: the channels that text must leave as they are.
    """

    weights: Weights
    stream: Stream
    silent: np.ndarray
    fail: Fail

    def prove(self, layer: int, report: dict[str, Any]) -> None:
        """Prove a layer, and note the gate that is the least closed."""
        kind = self.weights.parts.whole.layer_types[layer]
        prefix = f"model.layers.{layer}"
        seen = self._normalised(f"{prefix}.input_layernorm.weight")
        mixer = self._linear if kind == "linear_attention" else self._full
        gates = mixer(f"{prefix}.{'linear_attn' if mixer == self._linear else 'self_attn'}", seen)
        seen = self._normalised(f"{prefix}.post_attention_layernorm.weight")
        gates.append(self._gates(f"{prefix}.mlp.gate_proj.weight", seen))
        self._check_finite(f"{prefix}.mlp.up_proj.weight", seen)
        self._check_writes(f"{prefix}.mlp.down_proj.weight")
        report["gates"] = max(gates)

    def _normalised(self, name: str) -> Box:
        return normalised_box(self.stream, self.weights[name], self.weights.parts.whole.eps)

    def _linear(self, prefix: str, seen: Box) -> list[float]:
        biases = self.weights[f"{prefix}.dt_bias"]
        gates = [
            self._gates(f"{prefix}.in_proj_z.weight", seen),
            self._gates(f"{prefix}.in_proj_b.weight", seen),
            self._gates(f"{prefix}.in_proj_a.weight", seen, biases),
        ]
        name = f"{prefix}.A_log"
        for head in np.flatnonzero(self.weights[name] > LARGEST_DECAY).tolist():
            self.fail(name, head, "exp(A_log) may not be finite")
        self._check_finite(f"{prefix}.in_proj_qkv.weight", seen)
        for part in ("conv1d", "norm"):
            self._check_small(f"{prefix}.{part}.weight")
        self._check_writes(f"{prefix}.out_proj.weight")
        return gates

    def _full(self, prefix: str, seen: Box) -> list[float]:
        dim = self.weights.parts.whole.head_dim
        rows = np.arange(self.weights.shapes[f"{prefix}.q_proj.weight"][0])
        gates = [self._gates(f"{prefix}.q_proj.weight", seen, among=rows % (2 * dim) >= dim)]
        for part in ("k_proj", "v_proj"):
            self._check_finite(f"{prefix}.{part}.weight", seen)
        for part in ("q_norm", "k_norm"):
            self._check_small(f"{prefix}.{part}.weight")
        self._check_writes(f"{prefix}.o_proj.weight")
        return gates

    def _gates(
        self, name: str, seen: Box, biases: np.ndarray | None = None, among: np.ndarray | None = None
    ) -> float:
        """Show that rows are closed, and return the largest value that one can have."""
        worst = -np.inf
        for first, block in self.weights.blocks(name):
            rows = slice(first, first + len(block))
            most = seen.most(block)
            if biases is not None:
                most += biases[rows]
            if among is not None:
                most[~among[rows]] = -np.inf
            worst = max(worst, float(most.max()))
            for row in np.flatnonzero(most > CLOSED).tolist():
                reason = (
                    f"the gate may be {most[row]:g} on a token of the machine: not closed (<= {CLOSED:g})"
                )
                self.fail(name, first + row, reason)
            for row in np.flatnonzero(seen.sizes(block) > FINITE).tolist():
                self.fail(name, first + row, NOT_FINITE)
        return worst

    def _check_finite(self, name: str, seen: Box) -> None:
        for first, block in self.weights.blocks(name):
            for row in np.flatnonzero(seen.sizes(block) > FINITE).tolist():
                self.fail(name, first + row, NOT_FINITE)

    def _check_small(self, name: str) -> None:
        for first, block in self.weights.blocks(name):
            sizes = np.abs(block).reshape(len(block), -1).max(axis=1)
            for row in np.flatnonzero(sizes > FINITE).tolist():
                self.fail(name, first + row, "a weight with which products may not be finite")

    def _check_writes(self, name: str) -> None:
        """Text must not touch the machine's channels: they have to be 0 before the head."""
        for first, block in self.weights.blocks(name):
            written = (block != 0).any(axis=1) & self.silent[first : first + len(block)]
            for row in np.flatnonzero(written).tolist():
                self.fail(name, first + row, "a layer of the base writes into a channel of the machine")
