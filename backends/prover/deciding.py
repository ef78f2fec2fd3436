"""Rows of heads that decide nothing: whatever the token, they are off, or on though they read something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qgpu.backends.prover.counter import KEEPS, WRITES

if TYPE_CHECKING:
    from qgpu.backends.prover.heads import Layer

ON = {"qkv": 32.0, "z": 32.0, "b": WRITES}
"""From here on a row is on; a write strength is exactly 1."""


def check_rows(layer: Layer) -> None:
    """Report rows of a half layer's heads that are never on, or always though they read what varies.

    A key or a query that is off by its biases alone is a row of memory that is not in use.
    """
    unused = np.zeros(len(layer.rows["qkv"].base), bool)
    unused[: 2 * layer.shape.heads * layer.shape.key_dim] = True
    for which, on in ON.items():
        table, tensor = layer.rows[which], layer.name(f"in_proj_{which}")
        varies = table.high > table.low
        live = (layer.tensors[f"in_proj_{which}"] != 0).any(axis=1)
        if which == "qkv":
            live &= varies | ~unused
        for row in np.flatnonzero(live & (table.most <= KEEPS)):
            layer.fail(tensor, int(row), "is never on: it does nothing")
        for row in np.flatnonzero(varies & (table.least >= on)):
            layer.fail(tensor, int(row), "is always on: what it reads decides nothing")
