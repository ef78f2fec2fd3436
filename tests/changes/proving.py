"""What the prover says of changed tensors, from the first layer on that they touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qgpu.backends.prover.program import Condition
from qgpu.backends.prover.prove import Failure, Proof
from qgpu.backends.prover.stream import Stream, embedded

EMBEDDING = "model.embed_tokens.weight"

Tensors = Mapping[str, np.ndarray]
Rows = set[tuple[str, int | None]]


class Loaded(dict[str, np.ndarray]):
    """Tensors as the prover reads them: float64, by name."""

    def __init__(self, tensors: Tensors, config: dict[str, Any]) -> None:
        super().__init__((name, tensor.astype(np.float64)) for name, tensor in tensors.items())
        self.config, self.dtype, self.sha256 = config, config["dtype"], ""
        self.names = sorted(self)


class NotProved(Exception):
    """A row that is proved of the unchanged tensors and not of these; ends the proof."""


class _First(Proof):
    """A proof that ends with the first row that is not proved, but for those that never were."""

    def __init__(self, checkpoint: Loaded, conditions: Sequence[Condition], unproved: Rows) -> None:
        super().__init__(checkpoint, conditions)
        self._unproved = unproved

    def fail(self, tensor: str, row: int | None, reason: str) -> None:
        if (tensor, row) not in self._unproved:
            raise NotProved(str(Failure(tensor, row, reason)))


class Prover:
    """Proves changed tensors, as far as what stands before the change has been proved of those unchanged.

    Attributes:
        unproved: of the unchanged tensors, (tensor, row).
    """

    def __init__(self, tensors: Tensors, config: dict[str, Any], conditions: Sequence[Condition]) -> None:
        self._tensors, self._config, self._conditions = tensors, config, conditions
        self._kinds: list[str] = config["layer_types"]
        self._streams: list[Stream] = []
        proof = Proof(Loaded(tensors, config), conditions)
        self._streams.append(embedded(proof.checkpoint[EMBEDDING]))
        for layer, kind in enumerate(self._kinds):
            self._streams.append(proof.layer(self._streams[-1], layer, kind))
        proof.readout(self._streams[-1])
        self.unproved: Rows = {(failure.tensor, failure.row) for failure in proof.certificate.failures}

    def new_row(self, changed: Tensors) -> str | None:
        """The first row that is proved of the unchanged tensors and not of these, and why; or None."""
        try:
            self._prove(changed)
        except NotProved as error:
            return str(error)
        return None

    def _prove(self, changed: Tensors) -> None:
        (name,) = changed
        proof = _First(Loaded({**self._tensors, **changed}, self._config), self._conditions, self.unproved)
        first = _layer_of(name, len(self._kinds))
        stream = self._streams[max(first, 0)] if first >= 0 else embedded(proof.checkpoint[EMBEDDING])
        for layer in range(max(first, 0), len(self._kinds)):
            stream = proof.layer(stream, layer, self._kinds[layer])
            if stream.same(self._streams[layer + 1]):
                return
        proof.readout(stream)


def _layer_of(name: str, layers: int) -> int:
    """The layer of a tensor; -1 for the embedding, and what comes after all for the head."""
    if name == EMBEDDING:
        return -1
    parts = name.split(".")
    return int(parts[2]) if parts[1] == "layers" else layers
