"""The Gated DeltaNet half layer: each head is a memory of rows of bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.counter import count_tokens, counts
from qgpu.backends.prover.deciding import check_rows
from qgpu.backends.prover.facts import Literals, Term
from qgpu.backends.prover.memory import prove_memory
from qgpu.backends.prover.neurons import activation
from qgpu.backends.prover.projection import Fail, project
from qgpu.backends.prover.reads import BIT, Conditions, Reads
from qgpu.backends.prover.stream import Stream

NO_DECAY = -110.0
"""exp(A_log) is exactly 0 in float32 up to this."""

LONGEST = 1 << 14
"""The most values of a row that are looked at one by one."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a Gated DeltaNet."""

    heads: int
    key_dim: int
    head_dim: int
    taps: int
    eps: float


@dataclass(frozen=True)
class Head:
    """A head's rows of the projections."""

    index: int
    key: slice
    query: slice
    value: slice
    gate: slice


@dataclass
class Layer:
    """A half layer under proof.

    Attributes:
        stream, seen: the residual stream, and as the norm hands it on.
        rows: of the projections qkv, z and b.
        taps: by how many tokens before each row of qkv is of.
        kinds: number of heads by kind.
        error: the largest error of what is read.
        conditions: what is taken for granted of tokens.
    """

    number: int
    stream: Stream
    seen: Stream
    tensors: dict[str, np.ndarray]
    shape: Shape
    prefix: str
    dtype: str
    fail: Fail

    def __post_init__(self) -> None:
        self.kinds: dict[str, int] = defaultdict(int)
        self.error = 0.0
        self.conditions: list[str] = []
        self.rows = {
            n: project(self.seen, self.tensors[f"in_proj_{n}"], self.name(f"in_proj_{n}"), self.fail)
            for n in ("qkv", "z", "b")
        }
        self.taps = self._taps()
        self._literals: dict[tuple[str, int], Literals] = {}

    def name(self, part: str) -> str:
        """The name of a tensor of this half layer."""
        return f"{self.prefix}.{part}.weight"

    def _taps(self) -> np.ndarray:
        conv = self.tensors["conv1d"][:, 0, :]
        single = ((conv != 0).sum(axis=1) == 1) & (conv.max(axis=1) == 1)
        for row in np.flatnonzero(~single):
            self.fail(self.name("conv1d"), int(row), "the convolution's row is not a single tap of 1")
        return conv.shape[1] - 1 - np.argmax(conv != 0, axis=1)

    def heads(self) -> Iterator[Head]:
        """All heads."""
        shape = self.shape
        keys, values = shape.heads * shape.key_dim, shape.head_dim
        for index in range(shape.heads):
            at = index * shape.key_dim
            yield Head(
                index,
                slice(keys + at, keys + at + shape.key_dim),
                slice(at, at + shape.key_dim),
                slice(2 * keys + index * values, 2 * keys + (index + 1) * values),
                slice(index * values, (index + 1) * values),
            )

    def literals(self, which: str, row: int) -> Literals:
        """What is needed for a row to be on."""
        found = self._literals.get((which, row))
        if found is None:
            found = self._literals[which, row] = self.rows[which].literals(row, BIT)
        return found

    def is_on(self, which: str, row: int) -> Term:
        """1 where a row is above 0."""
        table = self.rows[which]
        return table.term(row, (table.values(row) > 0).astype(np.float64))

    def on_values(self, which: str, row: int) -> np.ndarray:
        """What a row can be where it is on."""
        table = self.rows[which]
        values = table.values(row)
        return values[(values > 0) & (values <= table.most_where(row, self.literals(which, row)))]

    def on_rows(self, which: str, rows: range, largest: float | None) -> list[int]:
        """The rows that can be on; all have to be exactly on or off, and at most `largest`."""
        table, found = self.rows[which], []
        tensor = self.name(f"in_proj_{which}")
        for row in rows:
            if table.most[row] <= -128 or (table.low[row] == table.high[row] and table.base[row] == 0):
                continue
            span = table.high[row] - table.low[row]
            if span >= LONGEST:
                self.fail(tensor, row, f"{span + 1} values")
                continue
            values = table.values(row)
            if activation(values) is None:
                self.fail(tensor, row, "neither off (<= -128) nor on (>= 32) for every input")
                continue
            if largest is not None and values[-1] > largest:
                tight = table.refined(row)
                if tight > largest:
                    self.fail(tensor, row, f"reaches {tight:g}; a bit is {largest:g}")
            if values[-1] > 0:
                found.append(row)
        return found


def run_heads(layer: Layer, conditions: Conditions, report: dict) -> Stream:
    """Prove a half layer and return the stream after it."""
    out = layer.tensors["out_proj"]
    for index in np.flatnonzero(layer.tensors["A_log"] > NO_DECAY):
        layer.fail(f"{layer.prefix}.A_log", int(index), "exp(A_log) is not exactly 0: the state fades")
    check_rows(layer)
    reads = Reads(layer)
    for head in layer.heads():
        columns = np.flatnonzero((out[:, head.gate] != 0).any(axis=0))
        if not len(columns):
            _check_unread(layer, head)
        elif counts(layer, head):
            layer.kinds["counter"] += 1
            count_tokens(layer, reads, head, columns)
        else:
            prove_memory(layer, reads, head, columns)
    result = reads.applied(conditions)
    report["heads"] = dict(layer.kinds)
    report["read_error"] = float(layer.error)
    report["conditions"] = list(dict.fromkeys(layer.conditions))
    return result


def _check_unread(layer: Layer, head: Head) -> None:
    if (layer.tensors["in_proj_qkv"][head.value] != 0).any():
        reason = f"head {head.index} holds what nothing reads"
        layer.fail(layer.name("in_proj_qkv"), head.value.start, reason)
