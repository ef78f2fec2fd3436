"""The logits of a merged checkpoint: text's on the machine's tokens, and the machine's on text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qgpu.backends.prover.merged.bounds import SLACK, normalised_box
from qgpu.backends.prover.merged.text import Text
from qgpu.backends.prover.merged.weights import Weights
from qgpu.backends.prover.projection import Fail
from qgpu.backends.prover.stream import Stream
from qgpu.backends.transformer.merge.shapes import FINAL_NORM, HEAD

APART = 100.0
"""By how much logits of the other kind of tokens are below the largest."""


@dataclass
class Ends:
    """Proves the head."""

    weights: Weights
    text: Text
    fail: Fail

    def text_rows(self, stream: Stream, least: float, report: dict[str, Any]) -> None:
        """On the machine's tokens text's logits are APART below the largest, which is at least `least`."""
        weights = self.weights
        seen = normalised_box(stream, weights[FINAL_NORM], weights.parts.whole.eps)
        worst = -np.inf
        for first, block in weights.blocks(HEAD, 0, weights.parts.first_token):
            most = seen.most(block)
            worst = max(worst, float(most.max()))
            for row in np.flatnonzero(most > least - APART).tolist():
                reason = f"text's logit may be {most[row]:g} on a token of the machine, beside {least:g}"
                self.fail(HEAD, first + row, reason)
        report["text_below"] = least - worst

    def machine_rows(self, report: dict[str, Any]) -> float:
        """On text the machine's logits are APART below the largest, up to a size of the stream.

        It is returned. They read nothing that text has but flags, which the norm divides by the stream's root
        mean square. The largest logit of text is at least minus the product of its row's size and the
        normalised stream's: that of the smallest row bounds it.
        """
        weights, text = self.weights, self.text
        factor = 1.0 + weights[FINAL_NORM]
        has = ~text.silent
        flag = -np.inf
        for first, block in weights.blocks(HEAD, weights.parts.first_token):
            for row in np.flatnonzero(((block != 0) & has & (factor != 0)).any(axis=1)).tolist():
                self.fail(HEAD, first + row, "a logit of the machine reads a channel that text has")
            shares = block @ (factor * text.flags)
            flag = max(flag, float(shares.max()))
            for row in np.flatnonzero(shares >= 0).tolist():
                self.fail(HEAD, first + row, f"text's flag gives a logit of the machine {shares[row]:g}")
        # |x| / rms is sqrt(hidden) at most.
        smallest = self._smallest(factor) * np.sqrt(len(factor))
        limit = -flag * (1 - SLACK) / (APART + smallest * (1 + SLACK))
        report["text_logit"], report["largest_text_stream"] = -float(smallest), float(limit)
        if flag < 0 and limit <= text.root_mean_square:
            self.fail(HEAD, None, f"on text the machine's logits are off up to a stream of {limit:g} alone")
        return float(limit)

    def _smallest(self, factor: np.ndarray) -> float:
        """The smallest Euclidean size of a row of text, as the norm scales its channels."""
        weights, found = self.weights, np.inf
        scale = np.where(self.text.silent & (self.text.flags == 0), 0.0, factor)
        for _, block in weights.blocks(HEAD, 0, weights.parts.first_token):
            found = min(found, float(np.linalg.norm(block * scale, axis=1).min()))
        return found
