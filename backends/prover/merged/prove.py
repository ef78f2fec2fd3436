"""The proof of a merged checkpoint: launches are exact through all layers, compiled layers add 0 to text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qgpu.backends.prover.merged.closed import OwnLayers
from qgpu.backends.prover.merged.ends import Ends
from qgpu.backends.prover.merged.text import TextInCompiled, read_text
from qgpu.backends.prover.merged.view import CompiledView
from qgpu.backends.prover.merged.weights import Weights, open_weights
from qgpu.backends.prover.program import Condition
from qgpu.backends.prover.prove import NOT_SHOWN, Certificate, Failure, Proof
from qgpu.backends.prover.stream import Stream

TOGETHER = "a launch is one run of the machine's tokens: none of text stands within it"
FINITE_TEXT = "what the base computes of text is finite"

NOT_SHOWN_MERGED = (
    *NOT_SHOWN,
    "that text in the base's layers is what it is in the base: the wider norms round anew",
)
"""What a certificate of a merged checkpoint says nothing about."""


@dataclass
class MergedCertificate(Certificate):
    """What was proved of a merged checkpoint.

    Attributes:
        sha256: of all files of tensors, one after another in the order of their names.
        merged: the parts: compiled layers, layers of the base, the machine's first token.
        text: figures of text: sizes of the largest row and token, and by how much the flag outweighs them.
    """

    merged: dict[str, int] = field(default_factory=dict)
    text: dict[str, float] = field(default_factory=dict)


def prove_merged(
    directory: str | Path,
    conditions: Sequence[Condition] = (),
    watch: Callable[[int], object] | None = None,
    layers: int | None = None,
) -> MergedCertificate:
    """Prove a merged checkpoint, and report what cannot be.

    Args:
        conditions: what is taken for granted of what programs write, in the checkpoint's channels.
        watch: called with each layer before it is proved.
        layers: on the machine's tokens prove so many compiled layers alone, and all else as if they were all;
            the certificate then says that it is not complete.

    Raises:
        ProofError: there is no merged checkpoint.
    """
    return _MergedProof(open_weights(directory), conditions).run(watch or (lambda layer: None), layers)


class _MergedProof:
    def __init__(self, weights: Weights, conditions: Sequence[Condition]) -> None:
        self.weights, self.view = weights, CompiledView(weights)
        self.proof = Proof(self.view, conditions)
        self.failures: list[Failure] = []
        self._seen: set[tuple[str, int | None]] = set()

    def fail(self, tensor: str, row: int | None, reason: str) -> None:
        if (tensor, row) not in self._seen:
            self._seen.add((tensor, row))
            self.failures.append(Failure(tensor, row, reason))

    def run(self, watch: Callable[[int], object], layers: int | None) -> MergedCertificate:
        text = read_text(self.weights, self.fail)
        self.view.check_idle(self.fail)
        stream = self.proof.through(watch, layers)
        closed = TextInCompiled(self.weights, text, self.fail)
        for layer in self.weights.compiled:
            closed.prove(layer, self._report(layer))
        own = OwnLayers(self.weights, stream, text.silent, self.fail)
        for layer in self.weights.own:
            watch(layer)
            own.prove(layer, self._report(layer))
        limit = self._logits(Ends(self.weights, text, self.fail), stream, layers is None)
        return self._certificate(
            [
                TOGETHER,
                FINITE_TEXT,
                f"text's stream has a root mean square of at most {limit:g} before the head",
            ],
            {"largest_text": text.largest, "flag_margin": closed.margin},
            layers is None,
        )

    def _report(self, layer: int) -> dict[str, Any]:
        """The report of a layer: the one that there is, or a new one."""
        reports = self.proof.certificate.layers
        found = next((report for report in reports if report["layer"] == layer), None)
        if found is None:
            found = {"layer": layer, "mixer": self.weights.parts.whole.layer_types[layer]}
            reports.append(found)
        return found

    def _logits(self, ends: Ends, stream: Stream, complete: bool) -> float:
        """Prove the head; return the largest stream of text for which it is."""
        if complete:
            self.proof.readout(stream)
        report = self._report_of_head()
        least = report.get("least_chosen")
        if least is not None:
            ends.text_rows(stream, least, report)
        return ends.machine_rows(report)

    def _report_of_head(self) -> dict[str, Any]:
        reports = self.proof.certificate.layers
        if reports[-1]["layer"] != "head":
            reports.append({"layer": "head"})
        return reports[-1]

    def _certificate(
        self, conditions: list[str], text: dict[str, float], complete: bool
    ) -> MergedCertificate:
        found, parts = self.proof.certificate, self.weights.parts
        placed = [
            f if f.row is None else dataclasses.replace(f, row=self.view.place(f.tensor, f.row))
            for f in found.failures
        ]
        return MergedCertificate(
            found.sha256,
            found.dtype,
            [*found.conditions, *conditions],
            found.layers,
            list(NOT_SHOWN_MERGED),
            [*placed, *self.failures],
            complete,
            {"compiled": parts.layers, "own": len(self.weights.own), "first_token": parts.first_token},
            text,
        )
