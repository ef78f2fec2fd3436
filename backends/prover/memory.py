"""A head as a memory: its keys and queries one-hot, its strength 0 or 1, its constants those of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qgpu.backends.prover.arithmetic import read_column, rounded, unit_key
from qgpu.backends.prover.counter import KEEPS, WRITES
from qgpu.backends.prover.facts import Literals, either
from qgpu.backends.prover.gather import prove_gather
from qgpu.backends.prover.reads import BIT, Reads
from qgpu.backends.prover.search import Search
from qgpu.backends.prover.stream import low_bit

if TYPE_CHECKING:
    from qgpu.backends.prover.heads import Head, Layer

CONSTANT = 2.0**20
"""Values from this size on are a row's constant."""


def prove_memory(layer: Layer, reads: Reads, head: Head, columns: np.ndarray) -> None:
    """Prove a head that is a memory, and note what it reads."""
    tensor = layer.name("in_proj_qkv")
    keys = layer.on_rows("qkv", range(head.key.start, head.key.stop), None)
    queries = layer.on_rows("qkv", range(head.query.start, head.query.stop), None)
    if not _strength_is_sure(layer, head):
        return
    for what, rows in (("keys", keys), ("queries", queries)):
        if len(set(layer.taps[rows].tolist())) > 1:
            layer.fail(layer.name("conv1d"), rows[0], f"{what} of several taps")
            return
    pair = together(layer, keys) or together(layer, queries)
    if pair is not None:
        prove_gather(layer, reads, head, columns, keys, queries)
        return
    constants = _constants(layer, head)
    if constants is None:
        return
    for row in keys + queries:
        if any(unit_key(x, 1, layer.dtype) != 1 for x in layer.on_values("qkv", row)):
            layer.fail(tensor, row, "a key's length is not exactly 1")
            return
    layer.kinds["memory"] += 1
    found = read_bits(layer, head, columns, queries, constants)
    if found is None:
        return
    chosen, literals = found
    places = reads.bits(head, chosen, literals, one_row=True)
    _note_delays(layer, head, keys, queries, places)
    add_columns(layer, reads, head, places, constants, 1)


def together(layer: Layer, rows: list[int]) -> tuple[int, int] | None:
    """Two rows that are not shown never to be on at once."""
    known = [layer.literals("qkv", row) for row in rows]
    for i, one in enumerate(known):
        for j in range(i):
            if not one.apart(known[j]) and not _never_both(layer, rows[i], rows[j]):
                return rows[j], rows[i]
    return None


def _never_both(layer: Layer, one: int, other: int) -> bool:
    """Whether two rows of keys or queries are shown by cases not to be on at once."""
    search = Search(layer.stream.facts, [([layer.is_on("qkv", row)], 1, 1) for row in (one, other)], 0)
    return search.refuted(search.start())


def _strength_is_sure(layer: Layer, head: Head) -> bool:
    values = layer.rows["b"].values(head.index)
    strange = values[(values > KEEPS) & (values < WRITES)]
    if len(strange):
        reason = f"the write strength's logit can be {strange[0]:g}: neither <= -104 nor >= 20"
        layer.fail(layer.name("in_proj_b"), head.index, reason)
    return not len(strange)


def _constants(layer: Layer, head: Head) -> np.ndarray | None:
    """The constant of each column (0 for bits), where it is the same in every row."""
    table, rows = layer.rows["qkv"], np.arange(head.value.start, head.value.stop)
    tensor = layer.name("in_proj_qkv")
    large = large_columns(layer, head)
    varies = large & ((table.low[rows] != table.high[rows]) | (layer.taps[rows] != 0))
    if varies.any():
        layer.fail(tensor, int(rows[np.argmax(varies)]), "a row's constant varies")
        return None
    if not large.any():
        layer.fail(tensor, int(rows[0]), f"head {head.index} has no constant column")
        return None
    return np.where(large, table.base[rows], 0.0)


def large_columns(layer: Layer, head: Head) -> np.ndarray:
    """Which columns hold a row's constant."""
    table, rows = layer.rows["qkv"], np.arange(head.value.start, head.value.stop)
    return np.maximum(np.abs(table.least[rows]), np.abs(table.most[rows])) >= CONSTANT


def read_bits(
    layer: Layer, head: Head, columns: np.ndarray, queries: list[int], constants: np.ndarray
) -> tuple[list[int], Literals] | None:
    """The columns of bits that are read, and what holds where a row is; None where nothing can be."""
    tensor = layer.name("in_proj_qkv")
    rows = [r for r in range(head.value.start, head.value.stop) if not constants[r - head.value.start]]
    live = {row - head.value.start for r in rows for row in layer.on_rows("qkv", range(r, r + 1), BIT)}
    gates = layer.on_rows("z", range(head.gate.start, head.gate.stop), BIT)
    open_columns = {row - head.gate.start for row in gates}
    squares = float((constants**2).sum())
    half = 2.0 ** (np.floor(np.log2(squares)) - 24)
    data = len(live) * BIT**2
    exact = squares / float(low_bit(constants[constants != 0] ** 2).min()) <= 2.0**24
    if data >= half or not exact:
        layer.fail(tensor, head.value.start, f"the squares of bits, {data:g}, show beside {half:g}")
    for column in columns.tolist():
        if constants[column] and column in open_columns:
            layer.fail(layer.name("out_proj"), None, f"head {head.index} puts out its constant {column}")
    if not queries:
        return None
    literals = either([layer.literals("qkv", row) for row in queries])
    return [int(c) for c in columns if c in live and c in open_columns], literals


def add_columns(
    layer: Layer, reads: Reads, head: Head, places: dict[int, int], constants: np.ndarray, rows: int
) -> None:
    """Note where the bits of some columns go, as the layer computes them from `rows` rows read at once."""
    out, norm = layer.tensors["out_proj"], layer.tensors["norm"]
    sizes: dict[float, np.ndarray] = {}
    for column, bit in places.items():
        weight = float(norm[column])
        if weight not in sizes:
            found = read_column(
                layer.dtype,
                layer.shape.key_dim,
                constants,
                BIT,
                BIT,
                rows,
                [1.0],
                BIT,
                weight,
                layer.shape.eps,
            )
            sizes[weight] = np.array(found[1.0])
        gate = head.gate.start + column
        for channel in np.flatnonzero(out[:, gate]):
            given = np.float32(out[channel, gate]) * sizes[weight].astype(np.float32)
            reads.add(int(channel), bit, gate, rounded(given, layer.dtype).astype(np.float64))


def _note_delays(
    layer: Layer, head: Head, keys: list[int], queries: list[int], places: dict[int, int]
) -> None:
    """Bits of a row that every token writes and reads are those of tokens before."""
    table, strength = layer.rows["qkv"], layer.rows["b"]
    shape = layer.shape
    if len(keys) != 1 or len(queries) != 1 or strength.least[head.index] < WRITES:
        return
    at = keys[0] - shape.heads * shape.key_dim
    if at != queries[0] or any(table.low[r] != table.high[r] for r in keys + queries):
        return
    if layer.taps[keys[0]] or layer.taps[queries[0]]:
        return
    for column, bit in places.items():
        row = head.value.start + column
        if layer.taps[row] == 1:
            layer.stream.facts.delayed[bit] = layer.is_on("qkv", row)
