"""The proof of a checkpoint, layer by layer, from the embedding table to the logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.backends.prover.checkpoint import Checkpoint, Readable
from qgpu.backends.prover.heads import Layer, Shape, run_heads
from qgpu.backends.prover.logits import prove_logits
from qgpu.backends.prover.neurons import run_neurons
from qgpu.backends.prover.norm import normalised
from qgpu.backends.prover.program import Condition
from qgpu.backends.prover.projection import project
from qgpu.backends.prover.reads import Conditions
from qgpu.backends.prover.stream import Stream, embedded

FORMAT_VERSION = 1
"""Version of the certificate."""


FINITE = 2.0**40
"""Products of some numbers of this size are far from the end of the dtypes' ranges."""

RIGHT_NUMBERS = "that the numbers are the right ones: an exact weight may be a wrong one"
"""Not shown of tensors alone; a comparison with a circuit shows it."""

NOT_SHOWN = (
    RIGHT_NUMBERS,
    "the code of the stock layer, its kernels' IEEE arithmetic, and the chunked form of the delta rule",
)
"""What a certificate says nothing about."""


@dataclass(frozen=True)
class Failure:
    """What is not proved: tensor, row (None for all of it), reason."""

    tensor: str
    row: int | None
    reason: str

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}"
        return f"{self.tensor}{row}: {self.reason}"


@dataclass
class Certificate:
    """What was proved of a checkpoint.

    Attributes:
        sha256: of model.safetensors.
        conditions: what was taken for granted of programs: of these bits of a row at most one is 1.
        layers: bounds by half layer.
        not_shown: what the proof does not cover.
        failures: what is not proved.
        complete: every layer and the head were looked at.
    """

    sha256: str
    dtype: str
    conditions: list[str]
    layers: list[dict[str, Any]] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=lambda: list(NOT_SHOWN))
    failures: list[Failure] = field(default_factory=list)
    complete: bool = False

    @property
    def proved(self) -> bool:
        """Whether the proof holds for the whole checkpoint."""
        return self.complete and not self.failures

    def to_json(self) -> dict[str, Any]:
        """The content of a certificate file."""
        return {"version": FORMAT_VERSION, "proved": self.proved, **asdict(self)}


def prove(
    directory: str | Path,
    conditions: Sequence[Condition] = (),
    watch: Callable[[int], object] | None = None,
    layers: int | None = None,
) -> Certificate:
    """Prove a checkpoint, and report what cannot be.

    Args:
        conditions: what is taken for granted of what programs write, see `program`; the certificate says so.
        watch: called with each layer before it is proved.
        layers: prove so many layers alone; the certificate then says that it is not complete.

    Raises:
        ProofError: there is no checkpoint of the kind.
    """
    checkpoint = Checkpoint(directory)
    return Proof(checkpoint, conditions).run(watch or (lambda layer: None), layers)


class Proof:
    """A proof under way.

    Attributes:
        checkpoint: what is proved.
        certificate: what has been proved of it so far.
    """

    def __init__(self, checkpoint: Readable, conditions: Sequence[Condition]) -> None:
        self.conditions = Conditions(conditions)
        self.checkpoint, self.config = checkpoint, checkpoint.config
        self.dtype = checkpoint.dtype
        self.certificate = Certificate(checkpoint.sha256, checkpoint.dtype, [c.name for c in conditions])
        self._seen: set[tuple[str, int | None]] = set()

    def fail(self, tensor: str, row: int | None, reason: str) -> None:
        if (tensor, row) not in self._seen:
            self._seen.add((tensor, row))
            self.certificate.failures.append(Failure(tensor, row, reason))

    def run(self, watch: Callable[[int], object], layers: int | None) -> Certificate:
        """Prove the first layers alone, or all and the logits."""
        stream = self.through(watch, layers)
        if layers is not None:
            return self.certificate
        self.readout(stream)
        self.certificate.complete = True
        return self.certificate

    def through(self, watch: Callable[[int], object], layers: int | None) -> Stream:
        """Prove the first layers, or all, and return the stream after them."""
        stream = embedded(self.checkpoint["model.embed_tokens.weight"])
        for layer, kind in enumerate(self.config["layer_types"][:layers]):
            watch(layer)
            stream = self.layer(stream, layer, kind)
        return stream

    def layer(self, stream: Stream, layer: int, kind: str) -> Stream:
        """Prove a layer and return the stream after it."""
        prefix, report = f"model.layers.{layer}", {"layer": layer, "mixer": kind}
        stream = stream.copy()
        self.certificate.layers.append(report)
        if kind == "full_attention":
            seen = self._norm(stream, f"{prefix}.input_layernorm", report)
            self._attention(seen, f"{prefix}.self_attn")
        else:
            seen = self._norm(stream, f"{prefix}.input_layernorm", report)
            mixer = f"{prefix}.linear_attn"
            tensors = self._tensors(mixer)
            half = Layer(layer, stream, seen, tensors, self._shape(), mixer, self.dtype, self.fail)
            stream = run_heads(half, self.conditions, report)
        seen = self._norm(stream, f"{prefix}.post_attention_layernorm", report)
        mlp = {n: self.checkpoint[f"{prefix}.mlp.{n}.weight"] for n in ("gate_proj", "up_proj", "down_proj")}
        stream = run_neurons(stream, seen, mlp, f"{prefix}.mlp", self.dtype, self.fail, report)
        report["channels"] = int((stream.count > 0).sum())
        report["largest"] = float(np.where(stream.count > 0, stream.magnitude, 0).max())
        return stream

    def _shape(self) -> Shape:
        c = self.config
        return Shape(
            c["linear_num_key_heads"],
            c["linear_key_head_dim"],
            c["linear_value_head_dim"],
            c["linear_conv_kernel_dim"],
            c["rms_norm_eps"],
        )

    def _tensors(self, prefix: str) -> dict[str, np.ndarray]:
        names = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "conv1d", "norm", "out_proj")
        tensors = {name: self.checkpoint[f"{prefix}.{name}.weight"] for name in names}
        return tensors | {name: self.checkpoint[f"{prefix}.{name}"] for name in ("A_log", "dt_bias")}

    def _norm(self, stream: Stream, name: str, report: dict[str, Any]) -> Stream:
        weight = self.checkpoint[f"{name}.weight"]
        return normalised(stream, weight, self.dtype, f"{name}.weight", self.fail, report)

    def _attention(self, seen: Stream, prefix: str) -> None:
        """Full attention puts nothing out: its last projection is 0, and what that multiplies is finite."""
        for part in ("q_proj", "k_proj", "v_proj"):
            name = f"{prefix}.{part}.weight"
            sizes = np.abs(self.checkpoint[name]) @ seen.magnitude
            for row in np.flatnonzero(sizes > FINITE):
                self.fail(name, int(row), f"reaches {sizes[row]:g}: attention may not be finite")
        for part in ("q_norm", "k_norm"):
            if np.abs(self.checkpoint[f"{prefix}.{part}.weight"]).max() > FINITE:
                self.fail(f"{prefix}.{part}.weight", None, "attention may not be finite")
        name = f"{prefix}.o_proj.weight"
        for row in np.flatnonzero((self.checkpoint[name] != 0).any(axis=1)):
            self.fail(name, int(row), "full attention puts something out")

    def readout(self, stream: Stream) -> None:
        """Prove the logits of a stream."""
        report: dict[str, Any] = {"layer": "head"}
        self.certificate.layers.append(report)
        seen = self._norm(stream, "model.norm", report)
        logits = project(seen, self.checkpoint["lm_head.weight"], "lm_head.weight", self.fail)
        report["logits"] = [float(logits.least.min()), float(logits.most.max())]
        prove_logits(logits, self.checkpoint["lm_head.weight"], self.fail, report)
