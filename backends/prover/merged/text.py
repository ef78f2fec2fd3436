"""On text tokens every compiled layer adds exactly 0, and nothing of text is kept by the machine.

A text token has a flag in the machine's channels and 0 in all others of them; what it has in the base's is
bounded by the largest text row of the embedding (Cauchy and Schwarz). Every row that makes a key, a query,
a value, a gate or a write strength is far below 0, whichever token the convolution takes it from; neurons
have an input of exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qgpu.backends.prover.merged.bounds import CLOSED, FINITE, SINGLE, SLACK
from qgpu.backends.prover.merged.weights import Weights
from qgpu.backends.prover.projection import Fail
from qgpu.backends.transformer.merge.shapes import EMBEDDING

FLAGGED = ("in_proj_qkv", "in_proj_z", "in_proj_b")


@dataclass(frozen=True)
class Text:
    """What the text rows of the embedding have.

    Attributes:
        flags: float64 [hidden]: what every text token has in the machine's channels; 0 in the base's.
        silent: bool [hidden]: the machine's channels.
        largest: of the Euclidean sizes in the base's channels.
    """

    flags: np.ndarray
    silent: np.ndarray
    largest: float

    @property
    def root_mean_square(self) -> float:
        """The largest of a text token, as the embedding has it."""
        return float(np.sqrt((self.largest**2 + (self.flags**2).sum()) / len(self.flags)))


def read_text(weights: Weights, fail: Fail) -> Text:
    """Read the text rows of the embedding, and show that each has the same flags."""
    own, end = weights.parts.hidden, weights.parts.first_token
    silent = np.arange(weights.parts.whole.hidden) >= own
    usual, largest = None, 0.0
    for first, block in weights.blocks(EMBEDDING, 0, end):
        if usual is None:
            usual = np.median(block[:, own:], axis=0)
        for row, channel in _one_a_row(block[:, own:] != usual):
            got = f"{block[row, own + channel]:g}, not {usual[channel]:g} as other text has"
            fail(EMBEDDING, first + row, f"channel {own + channel} of the machine is {got}")
        largest = max(largest, float(np.linalg.norm(block[:, :own], axis=1).max()))
    assert usual is not None
    flags = np.concatenate([np.zeros(own), usual])
    if not flags.any():
        fail(EMBEDDING, None, "text has no flag in the machine's channels")
    return Text(flags, silent, largest)


def _one_a_row(wrong: np.ndarray) -> list[tuple[int, int]]:
    rows = np.flatnonzero(wrong.any(axis=1))
    return list(zip(rows.tolist(), wrong[rows].argmax(axis=1).tolist(), strict=True))


@dataclass
class TextInCompiled:
    """Proves that compiled layers add nothing on text.

    Attributes:
        margin: by how much the flag outweighs what else a row can read, in the least of all rows so far.
    """

    weights: Weights
    text: Text
    fail: Fail
    margin: float = np.inf

    def prove(self, layer: int, report: dict[str, Any]) -> None:
        """Prove a layer, and note the margin and the value that is the least closed."""
        prefix = f"model.layers.{layer}"
        factor = self._factor(f"{prefix}.input_layernorm.weight")
        mixer = f"{prefix}.linear_attn"
        closed = [self._closed(f"{mixer}.{part}.weight", factor) for part in FLAGGED]
        report["on_text"] = max(closed)
        self._check_finite(f"{mixer}.in_proj_a.weight", factor)
        factor = self._factor(f"{prefix}.post_attention_layernorm.weight")
        self._check_finite(f"{prefix}.mlp.gate_proj.weight", factor)
        self._check_input(f"{prefix}.mlp.up_proj.weight")

    def _factor(self, name: str) -> np.ndarray:
        """What a norm multiplies by, before it divides by the root mean square."""
        return 1.0 + self.weights[name]

    def _parts(self, block: np.ndarray, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each row makes of the flags, and the most of the rest; both times the root mean square."""
        scaled = block * factor
        rest = np.linalg.norm(scaled[:, ~self.text.silent], axis=1) * self.text.largest
        return scaled @ self.text.flags, rest

    def _closed(self, name: str, factor: np.ndarray) -> float:
        root, worst = self.text.root_mean_square * (1 + SLACK), -np.inf
        # eps is beside the mean square: the root of their sum is at most the sum of their roots.
        root += float(np.sqrt(self.weights.parts.whole.eps))
        for first, block in self.weights.blocks(name):
            flag, rest = self._parts(block, factor)
            most = (flag * (1 - SLACK) + rest * (1 + SLACK)) / root
            worst = max(worst, float(most.max()))
            read = rest > 0
            self.margin = min(self.margin, float((-flag[read] / rest[read]).min(initial=np.inf)))
            for row in np.flatnonzero((most > CLOSED) | (flag >= 0)).tolist():
                parts = f"the flag's {flag[row]:g} against up to {rest[row]:g}"
                self.fail(name, first + row, f"may be {most[row]:g} on a text token: {parts}")
            self._report_large(name, first, np.abs(flag) + rest, SINGLE)
        return worst

    def _check_finite(self, name: str, factor: np.ndarray) -> None:
        for first, block in self.weights.blocks(name):
            flag, rest = self._parts(block, factor)
            self._report_large(name, first, np.abs(flag) + rest, FINITE)

    def _report_large(self, name: str, first: int, sizes: np.ndarray, limit: float) -> None:
        """Report rows that are above a limit, before the norm divides them by the root mean square."""
        # That is at least the flags' part of it.
        least = np.sqrt((self.text.flags**2).mean())
        for row in np.flatnonzero(sizes > limit * least).tolist():
            self.fail(name, first + row, "may not be finite on a text token")

    def _check_input(self, name: str) -> None:
        """The inputs of neurons read nothing that text has."""
        has = ~self.text.silent | (self.text.flags != 0)
        for first, block in self.weights.blocks(name):
            for row, channel in _one_a_row((block != 0) & has):
                self.fail(name, first + row, f"the neuron's input reads channel {channel}, which text has")
