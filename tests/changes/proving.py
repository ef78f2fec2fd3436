"""What the prover says of changed tensors, from the first layer on that they touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qgpu.backends.prover.program import Condition
from qgpu.backends.prover.prove import Proof
from qgpu.backends.prover.stream import Stream, embedded

EMBEDDING = "model.embed_tokens.weight"

Tensors = Mapping[str, np.ndarray]


class Loaded(dict[str, np.ndarray]):
    """Tensors as the prover reads them: float64, by name."""

    def __init__(self, tensors: Tensors, config: dict[str, Any]) -> None:
        super().__init__((name, tensor.astype(np.float64)) for name, tensor in tensors.items())
        self.config, self.dtype, self.sha256 = config, config["dtype"], ""
        self.names = sorted(self)


class Prover:
    """Proves changed tensors, as far as what stands before the change has been proved of those unchanged.

    Attributes:
        unproved: of the unchanged tensors, (tensor, row).
    """

    def __init__(self, tensors: Tensors, config: dict[str, Any], conditions: Sequence[Condition]) -> None:
        self._tensors, self._config, self._conditions = tensors, config, conditions
        self._kinds: list[str] = config["layer_types"]
        self._streams: list[Stream] = []
        proof = self._proof({})
        self._streams.append(embedded(proof.checkpoint[EMBEDDING]))
        for layer, kind in enumerate(self._kinds):
            self._streams.append(proof.layer(self._streams[-1], layer, kind))
        proof.readout(self._streams[-1])
        self.unproved = _rows(proof)

    def new_rows(self, changed: Tensors) -> list[str]:
        """Rows of the first part that has any which are proved of the unchanged tensors, and not of these."""
        (name,) = changed
        proof = self._proof(changed)
        first = _layer_of(name, len(self._kinds))
        stream = self._streams[max(first, 0)] if first >= 0 else embedded(proof.checkpoint[EMBEDDING])
        for layer in range(max(first, 0), len(self._kinds)):
            stream = proof.layer(stream, layer, self._kinds[layer])
            if found := self._new(proof):
                return found
            if stream.same(self._streams[layer + 1]):
                return []
        proof.readout(stream)
        return self._new(proof)

    def _proof(self, changed: Tensors) -> Proof:
        checkpoint = Loaded({**self._tensors, **changed}, self._config)
        return Proof(checkpoint, self._conditions)

    def _new(self, proof: Proof) -> list[str]:
        found = [f for f in proof.certificate.failures if (f.tensor, f.row) not in self.unproved]
        return [str(failure) for failure in found]


def _rows(proof: Proof) -> set[tuple[str, int | None]]:
    return {(failure.tensor, failure.row) for failure in proof.certificate.failures}


def _layer_of(name: str, layers: int) -> int:
    """The layer of a tensor; -1 for the embedding, and what comes after all for the head."""
    if name == EMBEDDING:
        return -1
    parts = name.split(".")
    return int(parts[2]) if parts[1] == "layers" else layers
