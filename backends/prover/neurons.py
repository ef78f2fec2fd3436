"""The SwiGLU half layer: neurons of one direction are a function of one integer."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from qgpu.backends.prover.facts import Cause, Literals
from qgpu.backends.prover.literals import necessary
from qgpu.backends.prover.projection import INTEGERS, Fail, Rows, largest_partial, project
from qgpu.backends.prover.stream import Stream, low_bit
from qgpu.backends.prover.writes import Writes

OFF, ON = -128.0, 32.0
"""silu is exactly 0 up to OFF and the identity from ON on."""

LONGEST = 1 << 16
"""The most values of v that are looked at one by one."""


def activation(values: np.ndarray) -> np.ndarray | None:
    """silu of numbers, or None where one is neither off, nor 0, nor on."""
    exact = (values <= OFF) | (values == 0) | (values >= ON)
    return np.maximum(values, 0.0) if exact.all() else None


def run_neurons(
    stream: Stream,
    seen: Stream,
    tensors: dict[str, np.ndarray],
    prefix: str,
    dtype: str,
    fail: Fail,
    report: dict,
) -> Stream:
    """Prove a half layer and return the stream after it.

    Args:
        stream, seen: the residual stream, and as the norm hands it on.
    """
    gate, up, down = (tensors[f"{n}_proj"] for n in ("gate", "up", "down"))
    names = {n: f"{prefix}.{n}_proj.weight" for n in ("gate", "up", "down")}
    live = np.flatnonzero((down != 0).any(axis=0))
    gates = project(seen, gate, names["gate"], fail)
    ups = project(seen, up, names["up"], fail)
    values: dict[int, np.ndarray] = {}
    groups: dict[bytes, list[int]] = defaultdict(list)
    for row in live.tolist():
        found = _values(gates, ups, row, dtype, names, fail)
        if found is not None:
            values[row] = found
            groups[gates.weights[row].tobytes()].append(row)
    writes = Writes(stream)
    for number, members in enumerate(groups.values()):
        _add_group(writes, gates, members, values, down, number)
    _check_down(down, values, names["down"], dtype, fail, report)
    report["neurons"], report["gate_partial"] = len(live), float(gates.partial[live].max(initial=0))
    return writes.applied(dtype, names["down"], fail)


def _values(
    gates: Rows, ups: Rows, row: int, dtype: str, names: dict[str, str], fail: Fail
) -> np.ndarray | None:
    """What a neuron puts out, for every v of its gate."""
    if ups.low[row] != ups.high[row]:
        fail(names["up"], row, "up is not constant")
        return None
    if ups.base[row] == 0:
        fail(names["up"], row, "up is 0: the neuron does nothing")
        return None
    if gates.high[row] - gates.low[row] >= LONGEST:
        fail(names["gate"], row, f"the gate has {gates.high[row] - gates.low[row] + 1} values")
        return None
    inputs = gates.values(row)
    found = activation(inputs)
    if found is None:
        strange = inputs[(inputs > OFF) & (inputs < ON) & (inputs != 0)][0]
        fail(names["gate"], row, f"the gate can be {strange:g}: neither off (<= -128) nor 0 nor on (>= 32)")
        return None
    if dtype == "bfloat16" and (found > 256 * low_bit(found)).any():
        tight = gates.refined(row)
        if tight > 256 * float(low_bit(found).min()):
            fail(names["gate"], row, f"the gate reaches {tight:g}: more than 8 significant bits")
    return found * ups.base[row]


def _add_group(
    writes: Writes,
    gates: Rows,
    members: list[int],
    values: dict[int, np.ndarray],
    down: np.ndarray,
    number: int,
) -> None:
    row = members[0]
    variables, weights = gates.form(row)
    first = int(gates.low[row])
    used = np.flatnonzero((down[:, members] != 0).any(axis=1))
    stacked = np.array([values[m] for m in members])
    tables = down[np.ix_(used, np.array(members))] @ stacked
    known: dict[tuple[int, int], Literals] = {}
    for channel, table in zip(used.tolist(), tables, strict=True):
        on = np.flatnonzero(table)
        if not len(on):
            writes.idle.add(channel)
            continue
        hull = first + int(on[0]), first + int(on[-1])
        if hull not in known:
            known[hull] = necessary(writes.stream.facts, variables, weights, *hull)
        writes.add(channel, Cause(gates.term(row, table), known[hull], (number,)))


def _check_down(
    down: np.ndarray, values: dict[int, np.ndarray], name: str, dtype: str, fail: Fail, report: dict
) -> None:
    width = down.shape[1]
    low, high, grid = np.zeros(width), np.zeros(width), np.full(width, np.inf)
    for row, found in values.items():
        low[row], high[row], grid[row] = found.min(), found.max(), low_bit(found).min()
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore"):
        units = np.where(
            (down != 0) & (size > 0), low_bit(down) * np.where(np.isinf(grid), 1e300, grid), np.inf
        )
    unit = units.min(axis=1)
    partial = largest_partial(down, low, high) / np.where(np.isinf(unit), 1, unit)
    report["down_partial"] = float(partial.max(initial=0))
    for row in np.flatnonzero(partial > INTEGERS):
        fail(name, int(row), f"partial sums reach {partial[row]:g} times {unit[row]:g}: more than 2^24")
