"""The Gated DeltaNet half layer: each head is a memory of rows of bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.arithmetic import read_column, unit_key
from qgpu.backends.prover.cone import Term
from qgpu.backends.prover.counter import count_tokens, counts
from qgpu.backends.prover.neurons import activation
from qgpu.backends.prover.projection import Fail, project
from qgpu.backends.prover.stream import Stream, low_bit
from qgpu.backends.prover.writes import Write, Writes, necessary

WRITES, KEEPS = 20.0, -104.0
"""sigmoid is exactly 1 from WRITES on and exactly 0 up to KEEPS."""

NO_DECAY = -110.0
"""exp(A_log) is exactly 0 in float32 up to this."""

BIT = 32.0
"""A written bit, and an open read gate."""

CONSTANT = 2.0**20
"""Values from this size on are a row's constant."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a Gated DeltaNet."""

    heads: int
    key_dim: int
    head_dim: int
    taps: int
    eps: float


@dataclass
class _Head:
    """A head's rows of the projections, and the tap of each key, query and value row."""

    index: int
    key: slice
    query: slice
    value: slice
    gate: slice


def run_heads(
    stream: Stream,
    seen: Stream,
    tensors: dict[str, np.ndarray],
    shape: Shape,
    prefix: str,
    dtype: str,
    fail: Fail,
    report: dict,
    exclusive: Sequence[tuple[list[int], list[int]]] = (),
) -> Stream:
    """Prove a half layer and return the stream after it.

    Args:
        exclusive: conditions: of the bits that these heads read into the first channels, and the values of
            the second, at most one is above its lowest.
    """
    layer = _Layer(stream, seen, tensors, shape, prefix, dtype, fail)
    result = layer.run(exclusive)
    report["heads"] = dict(layer.kinds)
    report["read_error"] = float(layer.error)
    report["conditions"] = layer.conditions
    return result


class _Layer:
    def __init__(
        self,
        stream: Stream,
        seen: Stream,
        tensors: dict[str, np.ndarray],
        shape: Shape,
        prefix: str,
        dtype: str,
        fail: Fail,
    ) -> None:
        self.stream, self.seen, self.tensors = stream, seen, tensors
        self.shape, self.prefix, self.dtype, self.fail = shape, prefix, dtype, fail
        self.kinds: dict[str, int] = defaultdict(int)
        self.error = 0.0
        self.conditions: list[str] = []
        names = ("qkv", "z", "b")
        self.rows = {
            n: project(seen, tensors[f"in_proj_{n}"], self.name(f"in_proj_{n}"), fail) for n in names
        }
        self.taps = self._taps()
        self.literals: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}
        self.reads: list[tuple[_Head, int, list[tuple[int, float]]]] = []

    def name(self, part: str) -> str:
        return f"{self.prefix}.{part}.weight"

    def run(self, exclusive: Sequence[tuple[list[int], list[int]]]) -> Stream:
        shape, out = self.shape, self.tensors["out_proj"]
        self._decays()
        keys, values = shape.heads * shape.key_dim, shape.head_dim
        pending = []
        for index in range(shape.heads):
            at = index * shape.key_dim
            head = _Head(
                index,
                slice(keys + at, keys + at + shape.key_dim),
                slice(at, at + shape.key_dim),
                slice(2 * keys + index * values, 2 * keys + (index + 1) * values),
                slice(index * values, (index + 1) * values),
            )
            columns = np.flatnonzero((out[:, head.gate] != 0).any(axis=0))
            if len(columns):
                pending.append((head, columns))
            elif (self.tensors["in_proj_qkv"][head.value] != 0).any():
                self.fail(
                    self.name("in_proj_qkv"), head.value.start, f"head {index} holds what nothing reads"
                )
        extended = _Extended(self.stream)
        for head, columns in pending:
            self._memory(extended, head, columns)
        return extended.applied(self, exclusive)

    def _decays(self) -> None:
        for head in np.flatnonzero(self.tensors["A_log"] > NO_DECAY):
            self.fail(f"{self.prefix}.A_log", int(head), "exp(A_log) is not exactly 0: the state fades")

    def _taps(self) -> np.ndarray:
        conv = self.tensors["conv1d"][:, 0, :]
        single = ((conv != 0).sum(axis=1) == 1) & (conv.max(axis=1) == 1)
        for row in np.flatnonzero(~single):
            self.fail(self.name("conv1d"), int(row), "the convolution's row is not a single tap of 1")
        return conv.shape[1] - 1 - np.argmax(conv != 0, axis=1)

    def literal(self, which: str, row: int) -> tuple[np.ndarray, np.ndarray]:
        """What is needed for a row to be on (see `necessary`)."""
        found = self.literals.get((which, row))
        if found is None:
            rows = self.rows[which]
            places = np.flatnonzero(rows.weights[row])
            first = np.ceil((BIT - rows.base[row]) / rows.step[row])
            found = necessary(self.stream, places, rows.weights[row, places], first, np.inf)
            self.literals[which, row] = found
        return found

    def on_rows(self, which: str, rows: range, largest: float | None) -> list[int]:
        """The rows that can be on; all have to be exactly on or off, and at most `largest`."""
        table, found = self.rows[which], []
        tensor = self.name(f"in_proj_{which}")
        for row in rows:
            if table.most[row] <= -128 or (table.low[row] == table.high[row] and table.base[row] == 0):
                continue
            span = table.high[row] - table.low[row]
            if span >= 1 << 14:
                self.fail(tensor, row, f"{span + 1} values")
                continue
            values = table.base[row] + table.step[row] * np.arange(table.low[row], table.high[row] + 1)
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

    def apart(self, which: str, rows: list[int]) -> np.ndarray:
        """Which pairs of rows are never on at once."""
        pairs = [self.literal(which, row) for row in rows]
        needs = np.array([n for n, _ in pairs], dtype=np.float32).reshape(len(rows), -1)
        lacks = np.array([k for _, k in pairs], dtype=np.float32).reshape(len(rows), -1)
        apart = needs @ lacks.T > 0
        apart |= (needs @ self.stream.excludes.astype(np.float32)) @ needs.T > 0
        return apart | apart.T

    def _memory(self, extended: _Extended, head: _Head, columns: np.ndarray) -> None:
        tensor = self.name("in_proj_qkv")
        if counts(self, head):
            self.kinds["counter"] += 1
            count_tokens(self, extended, head, columns)
            return
        keys = self.on_rows("qkv", range(head.key.start, head.key.stop), None)
        queries = self.on_rows("qkv", range(head.query.start, head.query.stop), None)
        if not self._strength(head):
            return
        constants = self._constants(head)
        if constants is None:
            return
        for what, rows in (("keys", keys), ("queries", queries)):
            apart = self.apart("qkv", rows)
            np.fill_diagonal(apart, True)
            if not apart.all():
                first, second = np.argwhere(~apart)[0]
                self.fail(tensor, rows[first], f"{what} {rows[first]} and {rows[second]} may be on at once")
                return
            if len(set(self.taps[rows].tolist())) > 1:
                self.fail(self.name("conv1d"), rows[0], f"{what} of several taps")
        small = [self.rows["qkv"].most[r] for r in keys + queries]
        if small and unit_key(BIT, 1, self.dtype) != 1:
            self.fail(tensor, keys[0], "a key's length is not exactly 1")
        self.kinds["memory"] += 1
        self._read(extended, head, columns, queries, constants)

    def _strength(self, head: _Head) -> bool:
        table, row, name = self.rows["b"], head.index, self.name("in_proj_b")
        values = table.base[row] + table.step[row] * np.arange(table.low[row], table.high[row] + 1)
        strange = values[(values > KEEPS) & (values < WRITES)]
        if len(strange):
            self.fail(
                name, row, f"the write strength's logit can be {strange[0]:g}: neither <= -104 nor >= 20"
            )
        return not len(strange)

    def _constants(self, head: _Head) -> np.ndarray | None:
        """The constant of each column (0 for bits), where it is the same in every row."""
        table, rows = self.rows["qkv"], np.arange(head.value.start, head.value.stop)
        base, most = table.base[rows], table.most[rows]
        large = np.abs(base) + np.abs(most) >= CONSTANT
        varies = large & (table.low[rows] != table.high[rows])
        if varies.any():
            self.fail(self.name("in_proj_qkv"), int(rows[np.argmax(varies)]), "a row's constant varies")
            return None
        if not large.any():
            self.fail(self.name("in_proj_qkv"), int(rows[0]), f"head {head.index} has no constant column")
            return None
        return np.where(large, base, 0.0)

    def _read(
        self, extended: _Extended, head: _Head, columns: np.ndarray, queries: list[int], constants: np.ndarray
    ) -> None:
        shape, out = self.shape, self.tensors["out_proj"]
        bits = self.on_rows("qkv", range(head.value.start, head.value.stop), None)
        bits = [row for row in bits if not constants[row - head.value.start]]
        live = set(self._limited("qkv", bits))
        gates = set(self.on_rows("z", range(head.gate.start, head.gate.stop), BIT))
        half = float(low_bit(constants[constants != 0] ** 2).min()) * 2.0**-1
        data = len(bits) * BIT**2
        squares = float((constants**2).sum())
        if data >= 2.0 ** (np.floor(np.log2(squares)) - 24):
            self.fail(self.name("in_proj_qkv"), head.value.start, f"bits of {data:g} show beside {half:g}")
        if not queries:
            return
        literals = [self.literal("qkv", row) for row in queries]
        needs = np.logical_and.reduce([n for n, _ in literals])
        lacks = np.logical_and.reduce([k for _, k in literals])
        chosen = [
            int(c) for c in columns if head.value.start + int(c) in live and head.gate.start + int(c) in gates
        ]
        places = extended.bits(self, head, chosen, needs, lacks)
        norm = self.tensors["norm"]
        sizes: dict[float, list[float]] = {}
        for column in chosen:
            if norm[column] not in sizes:
                sizes[norm[column]] = read_column(
                    self.dtype, shape.key_dim, constants, BIT, BIT, 1, [1.0], BIT, norm[column], shape.eps
                )[1.0]
            ways = sizes[norm[column]]
            for channel in np.flatnonzero(out[:, head.gate.start + column]):
                weight = out[channel, head.gate.start + column]
                extended.read(
                    self, int(channel), places[column], head.gate.start + column, weight * np.array(ways)
                )

    def _limited(self, which: str, rows: list[int]) -> list[int]:
        table, tensor = self.rows[which], self.name(f"in_proj_{which}")
        for row in rows:
            if table.most[row] > BIT:
                tight = table.refined(row)
                if tight > BIT:
                    self.fail(tensor, row, f"what is written reaches {tight:g}; a bit is {BIT:g}")
        return rows


class _Extended:
    """The stream with a channel for each bit that a head reads."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.hidden = len(stream.low)
        self.needs: list[np.ndarray] = []
        self.lacks: list[np.ndarray] = []
        self.groups: list[tuple[list[int], np.ndarray, np.ndarray]] = []
        self.pending: list[tuple[int, int, int, np.ndarray]] = []
        self.counters: list[tuple[int, Term, float]] = []
        self.counts: list[int] = []

    def bits(
        self, layer: _Layer, head: _Head, columns: list[int], needs: np.ndarray, lacks: np.ndarray
    ) -> dict[int, int]:
        """Make a channel for each distinct bit of the columns; return it by column."""
        rows, places, distinct = layer.rows["qkv"], {}, {}
        for column in columns:
            row = head.value.start + column
            key = (rows.weights[row].tobytes(), rows.base[row], int(layer.taps[row]))
            if key not in distinct:
                distinct[key] = self.hidden + len(self.needs), row
                self.needs.append(needs)
                self.lacks.append(lacks)
                self.counts.append(1)
            places[column] = distinct[key][0]
        made = [row for _, row in distinct.values()]
        if made:
            apart = layer.apart("qkv", made)
            taps = layer.taps[made]
            apart &= taps[:, None] == taps[None, :]
            np.fill_diagonal(apart, False)
            self.groups.append(([place for place, _ in distinct.values()], apart, apart))
        return places

    def read(self, layer: _Layer, channel: int, bit: int, gate: int, ways: np.ndarray) -> None:
        """Add what a column gives to a channel."""
        self.pending.append((channel, bit, gate, ways))

    def count(self, channel: int, unit: float, limit: int, error: float) -> None:
        """Add a counter's count, 0 to `limit` times `unit`, read with an error of at most `error` units."""
        nothing = np.zeros(self.hidden, bool)
        self.needs.append(nothing)
        self.lacks.append(nothing)
        self.counts.append(limit)
        place = np.array([self.hidden + len(self.needs) - 1])
        table = unit * np.arange(limit + 1, dtype=np.float64)
        self.counters.append((channel, Term(place, np.array([1]), 0, table), error * unit / limit))

    def applied(self, layer: _Layer, exclusive: Sequence[tuple[list[int], list[int]]]) -> Stream:
        old, hidden = self.stream, self.hidden
        extra = len(self.needs)
        size = hidden + extra
        excludes, implies = np.zeros((size, size), bool), np.zeros((size, size), bool)
        excludes[:hidden, :hidden], implies[:hidden, :hidden] = old.excludes, old.implies
        if extra:
            needs, lacks = np.array(self.needs), np.array(self.lacks)
            implies[hidden:, :hidden], excludes[hidden:, :hidden] = needs, lacks
            excludes[:hidden, hidden:] = lacks.T
            across = needs.astype(np.float32) @ lacks.astype(np.float32).T > 0
            excludes[hidden:, hidden:] = across | across.T
            for places, apart, _ in self.groups:
                excludes[np.ix_(places, places)] |= apart
        self._restrict(excludes, exclusive)
        wide = Stream(
            np.concatenate([old.low, np.zeros(extra)]),
            np.concatenate([old.unit, np.ones(extra)]),
            np.concatenate([old.count, np.array(self.counts, np.int64)]),
            excludes,
            implies,
        )
        writes, errors = Writes(wide), np.zeros(hidden)
        for number, (channel, bit, gate, ways) in enumerate(self.pending):
            nominal = float(np.float32(np.round(ways.mean() * 4096) / 4096))
            errors[channel] = max(errors[channel], float(np.abs(ways - nominal).max()))
            writes.add(_gated(layer, wide, channel, bit, gate, nominal, number))
        for channel, term, error in self.counters:
            errors[channel] = max(errors[channel], error)
            nothing = np.zeros(size, bool)
            writes.add(Write(channel, term, nothing, nothing, (-2, channel)))
        after = writes.applied(layer.dtype, layer.name("out_proj"), layer.fail)
        self._round(layer, writes, after, errors)
        return Stream(
            after.low[:hidden],
            after.unit[:hidden],
            after.count[:hidden],
            after.excludes[:hidden, :hidden],
            after.implies[:hidden, :hidden],
        )

    def _restrict(self, excludes: np.ndarray, exclusive: Sequence[tuple[list[int], list[int]]]) -> None:
        """Note which bits exclude each other by the conditions."""
        for new, old in exclusive:
            bits = sorted({bit for channel, bit, _, _ in self.pending if channel in new})
            excludes[np.ix_(bits, [*bits, *old])] = True
            excludes[np.ix_(old, bits)] = True
            excludes[bits, bits] = False

    def _round(self, layer: _Layer, writes: Writes, after: Stream, errors: np.ndarray) -> None:
        """Check that the addition to the residual stream rounds what is read to what is meant."""
        digits = 24 if layer.dtype == "float32" else 8
        for channel in writes.by_channel:
            low, high = after.low[channel], after.low[channel] + after.unit[channel] * after.count[channel]
            error = errors[channel] * after.count[channel]
            layer.error = max(layer.error, error)
            if low <= 0:
                if error:
                    layer.fail(
                        layer.name("out_proj"),
                        channel,
                        f"an error of {error:.3g} on a channel without an offset",
                    )
                continue
            half = 2.0 ** (np.floor(np.log2(low)) - digits)
            if error >= half or (np.floor(np.log2(low)) != np.floor(np.log2(high)) and error):
                reason = f"an error of {error:.3g} in {low:g}..{high:g} is not below half a unit, {half:.3g}"
                layer.fail(layer.name("out_proj"), channel, reason)


def _gated(layer: _Layer, wide: Stream, channel: int, bit: int, gate: int, size: float, number: int) -> Write:
    """The term size * (gate is on) * bit."""
    rows = layer.rows["z"]
    places = np.flatnonzero(rows.weights[gate])
    low, high = int(rows.low[gate]), int(rows.high[gate])
    first = int(np.ceil((BIT - rows.base[gate]) / rows.step[gate]))
    span = max(1, high - first + 1)
    weights = np.append(rows.weights[gate, places].astype(np.int64), span)
    at = np.append(places, bit)
    table = np.zeros(high - low + span + 1)
    table[first + span - low :] = size
    needs, lacks = necessary(wide, at, weights, first + span, np.inf)
    return Write(channel, Term(at, weights, low, table), needs, lacks, (number,))
