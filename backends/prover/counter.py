"""A head that counts: a small write strength adds a step, a full one sets the count."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from qgpu.backends.prover.arithmetic import read_column, rounded, unit_key
from qgpu.backends.prover.stream import Stream

if TYPE_CHECKING:
    from qgpu.backends.prover.heads import _Extended, _Head, _Layer

WRITES, KEEPS = 20.0, -104.0
"""sigmoid is exactly 1 from WRITES on and exactly 0 up to KEEPS."""

CASES = 1 << 14
"""The most cases of a counter's inputs that are looked at one by one."""

F = np.float32


def cases(stream: Stream, places: np.ndarray) -> np.ndarray | None:
    """All that some channels' integers can be together, one case a row; None where these are too many."""
    count = stream.count[places]
    if np.prod(count + 1.0) > CASES:
        return None
    every = list(product(*(range(int(n) + 1) for n in count)))
    found = np.array(every, dtype=np.int64).reshape(len(every), len(places))
    on = found > 0
    keep = np.ones(len(found), bool)
    for i, j in product(range(len(places)), repeat=2):
        if stream.excludes[places[i], places[j]]:
            keep &= ~(on[:, i] & on[:, j])
        if stream.implies[places[i], places[j]]:
            keep &= ~on[:, i] | on[:, j]
    return found[keep]


def counts(layer: _Layer, head: _Head) -> bool:
    """Whether a head's write strength is ever neither 0 nor 1."""
    table, row = layer.rows["b"], head.index
    found = cases(layer.stream, np.flatnonzero(table.weights[row]))
    if found is None:
        return False
    logits = table.base[row] + table.step[row] * (
        found @ table.weights[row][np.flatnonzero(table.weights[row])]
    )
    return bool(((logits > KEEPS) & (logits < WRITES)).any())


def count_tokens(layer: _Layer, extended: _Extended, head: _Head, columns: np.ndarray) -> None:
    """Prove a counter: every count up to one more than the largest that a token sets is read exactly.

    A stated condition: the count stays within that.
    """
    tensor, rows = layer.name("in_proj_qkv"), layer.rows["qkv"]
    out = layer.tensors["out_proj"]
    targets = [(int(c), int(t)) for c in columns for t in np.flatnonzero(out[:, head.gate.start + c])]
    if len(targets) != 1:
        layer.fail(tensor, head.value.start, f"a counter with {len(targets)} outputs")
        return
    ((column, channel),) = targets
    constants = np.where(rows.low[head.value] == rows.high[head.value], rows.base[head.value], 0.0)
    keys = [rows.base[s.start] for s in (head.key, head.query)]
    plain = all(
        rows.low[s.start] == rows.high[s.start]
        and not layer.tensors["in_proj_qkv"][s.start + 1 : s.stop].any()
        for s in (head.key, head.query)
    )
    if not plain or min(keys) < 4 or unit_key(float(keys[0]), 1, layer.dtype) != 1 or not constants.any():
        layer.fail(tensor, head.key.start, "a counter without one constant key, query and constant column")
        return
    events = _events(layer, head, column)
    if events is None:
        layer.fail(tensor, head.value.start + column, "a counter's cases are too many")
        return
    _simulate(layer, extended, head, column, channel, constants, events)


def _events(layer: _Layer, head: _Head, column: int) -> set[tuple[float, float]] | None:
    """All pairs of a strength's logit and a value that a token can bring, but those that write nothing."""
    strength, value = layer.rows["b"], layer.rows["qkv"]
    row = head.value.start + column
    places = np.flatnonzero((strength.weights[head.index] != 0) | (value.weights[row] != 0))
    found = cases(layer.stream, places)
    if found is None or layer.taps[row] or layer.taps[head.key.start]:
        return None
    logits = strength.base[head.index] + strength.step[head.index] * (
        found @ strength.weights[head.index, places]
    )
    written = value.base[row] + value.step[row] * (found @ value.weights[row, places])
    return {(float(b), float(v)) for b, v in zip(logits, written, strict=True) if b > KEEPS}


def _simulate(
    layer: _Layer,
    extended: _Extended,
    head: _Head,
    column: int,
    channel: int,
    constants: np.ndarray,
    events: set[tuple[float, float]],
) -> None:
    tensor = layer.name("in_proj_qkv")
    steps = {event for event in events if event[0] < WRITES}
    sets = sorted({value for logit, value in events if logit >= WRITES})
    gate = head.gate.start + column
    z, weight = layer.rows["z"], layer.tensors["out_proj"][channel, gate]
    if len(steps) != 1 or not sets or z.low[gate] != z.high[gate] or z.base[gate] < 32:
        layer.fail(
            tensor, head.value.start + column, f"a counter with {len(steps)} steps and {len(sets)} values"
        )
        return
    ((logit, value),) = steps
    beta = F(rounded(F(1) / (F(1) + np.exp(F(-logit))), layer.dtype))
    unit = _unit(layer, channel)
    nominal = _read(layer, constants, F(beta * F(value)), column, gate)[0] * weight
    starts = [
        round(float(np.mean(_read(layer, constants, F(s), column, gate)) * weight / unit)) for s in sets
    ]
    limit = max(starts) + 1
    worst = 0.0
    for start, state in zip(starts, sets, strict=True):
        held = F(state)
        for number in range(start, limit + 1):
            read = [r * weight / unit for r in _read(layer, constants, held, column, gate)]
            worst = max(worst, *(abs(r - number) for r in read))
            held = F(held + beta * F(F(value) - held))
    if worst >= 0.5 or abs(nominal / unit - 1) > 0.25:
        layer.fail(
            tensor, head.value.start + column, f"a count up to {limit} is off by {worst:.2g} of a step"
        )
        return
    layer.conditions.append(
        f"{layer.prefix} head {head.index}: counts 0 to {limit}, the error is at most {worst:.2g} of a step"
    )
    extended.count(channel, unit, limit, worst)


def _unit(layer: _Layer, channel: int) -> float:
    """The spacing of numbers beside what the channel stands on."""
    digits = 23 if layer.dtype == "float32" else 7
    return float(2.0 ** (np.floor(np.log2(max(abs(layer.stream.low[channel]), 2.0**-20))) - digits))


def _read(layer: _Layer, constants: np.ndarray, held: np.float32, column: int, gate: int) -> list[float]:
    norm = layer.tensors["norm"][column]
    size = float(layer.rows["z"].base[gate])
    found = read_column(
        layer.dtype, layer.shape.key_dim, constants, 1.0, 32.0, 1, [float(held)], size, norm, layer.shape.eps
    )
    return found[float(held)]
