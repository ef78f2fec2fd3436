"""A head that counts: a small write strength adds a step, a full one sets the count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from qgpu.backends.prover.arithmetic import read_column, rounded, unit_key
from qgpu.backends.prover.facts import Facts

if TYPE_CHECKING:
    from qgpu.backends.prover.heads import Head, Layer
    from qgpu.backends.prover.reads import Reads

WRITES, KEEPS = 20.0, -104.0
"""sigmoid is exactly 1 from WRITES on and exactly 0 up to KEEPS."""

CASES = 1 << 14
"""The most cases of a counter's inputs, and the most counts, that are looked at one by one."""

F = np.float32


def cases(facts: Facts, variables: Sequence[int]) -> np.ndarray | None:
    """All that some variables can be together, one case a row; None where these are too many."""
    count = [facts.count[v] for v in variables]
    if np.prod(np.array(count, dtype=float) + 1) > CASES:
        return None
    every = list(product(*(range(n + 1) for n in count)))
    found = np.array(every, dtype=np.int64).reshape(len(every), len(variables))
    on = found > 0
    keep = np.ones(len(found), bool)
    for (i, a), (j, b) in product(enumerate(variables), repeat=2):
        if facts.excludes[a] >> b & 1:
            keep &= ~(on[:, i] & on[:, j])
        if facts.implies[a] >> b & 1:
            keep &= ~on[:, i] | on[:, j]
    return found[keep]


def counts(layer: Layer, head: Head) -> bool:
    """Whether a head's write strength is ever neither 0 nor 1."""
    table, row = layer.rows["b"], head.index
    variables, weights = table.form(row)
    found = cases(layer.stream.facts, variables)
    if found is None:
        return False
    logits = table.base[row] + table.step[row] * (found @ np.array(weights, dtype=np.int64))
    return bool(((logits > KEEPS) & (logits < WRITES)).any())


def count_tokens(layer: Layer, reads: Reads, head: Head, columns: np.ndarray) -> None:
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
    _simulate(layer, reads, head, column, channel, constants, events)


def _events(layer: Layer, head: Head, column: int) -> set[tuple[float, float]] | None:
    """All pairs of a strength's logit and a value that a token can bring, but those that write nothing."""
    strength, value = layer.rows["b"], layer.rows["qkv"]
    row = head.value.start + column
    places = np.flatnonzero((strength.weights[head.index] != 0) | (value.weights[row] != 0))
    found = cases(layer.stream.facts, layer.stream.at[places].tolist())
    if found is None or layer.taps[row] or layer.taps[head.key.start]:
        return None
    logits = strength.base[head.index] + strength.step[head.index] * (
        found @ strength.weights[head.index, places]
    )
    written = value.base[row] + value.step[row] * (found @ value.weights[row, places])
    return {(float(b), float(v)) for b, v in zip(logits, written, strict=True) if b > KEEPS}


def _simulate(
    layer: Layer,
    reads: Reads,
    head: Head,
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
    if (number := sum(limit - start + 1 for start in starts)) > CASES:
        layer.fail(
            tensor,
            head.value.start + column,
            f"a count up to {limit} from {len(sets)} values: {number} steps",
        )
        return
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
    reads.count(channel, unit, limit, worst)


def _unit(layer: Layer, channel: int) -> float:
    """The spacing of numbers beside what the channel stands on."""
    digits = 23 if layer.dtype == "float32" else 7
    return float(2.0 ** (np.floor(np.log2(max(abs(layer.stream.low[channel]), 2.0**-20))) - digits))


def _read(layer: Layer, constants: np.ndarray, held: np.float32, column: int, gate: int) -> list[float]:
    norm = layer.tensors["norm"][column]
    size = float(layer.rows["z"].base[gate])
    found = read_column(
        layer.dtype, layer.shape.key_dim, constants, 1.0, 32.0, 1, [float(held)], size, norm, layer.shape.eps
    )
    return found[float(held)]
