"""Read the neurons of a layer from its tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.equivalence.difference import Report, amount
from qgpu.backends.prover.equivalence.form import ALWAYS, Erasure, Linear, Neuron, Terms
from qgpu.backends.prover.equivalence.lift import grouped, lifted
from qgpu.backends.prover.equivalence.recover import check_silent
from qgpu.backends.prover.equivalence.standing import Constants, Standing
from qgpu.backends.transformer.numerics import GATE

NOTHING: Terms = frozenset()


@dataclass(frozen=True)
class Mlp:
    """The tensors of a SwiGLU half layer: gate and up [neuron, hidden], down [hidden, neuron]."""

    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray
    prefix: str

    def name(self, part: str) -> str:
        return f"{self.prefix}.{part}_proj.weight"


def recover_neurons(
    mlp: Mlp, constants: Constants, standing: Standing, report: Report
) -> tuple[dict[int, Neuron | Erasure], Standing]:
    """Return the neurons by number, and how values stand after them.

    A neuron that takes away a place's content makes room for another channel: what neurons write into the
    place is that one's, and what a neuron of a constant gate adds to it is its offset.

    Args:
        report: takes what is no neuron's.
    """
    _check_inputs(mlp, constants, report)
    for part, tensor in (("gate", mlp.gate), ("up", mlp.up)):
        check_silent(tensor, mlp.name(part), constants, report)
    gates = lifted(mlp.gate, constants, standing, GATE)
    erasures = _erasures(mlp)
    neurons, places = np.nonzero(mlp.down.T)
    weights = mlp.down[places, neurons] * GATE
    raw = grouped(neurons, places, weights)
    after = standing.copy()
    constant = [(gates[i].constant, dict(raw[i])) for i in gates.keys() & raw.keys() if not gates[i].terms]
    for place in erasures.values():
        after.erased(place, sum(size * out.get(place, 0.0) for size, out in constant))
    outputs = grouped(neurons, places, weights / after.unit[places])
    found: dict[int, Neuron | Erasure] = {}
    for index in sorted(gates.keys() | outputs.keys()):
        neuron = Neuron(gates.get(index, Linear(NOTHING, 0)), outputs.get(index, NOTHING))
        if index in erasures:
            found[index] = Erasure(erasures[index])
        elif neuron != (ALWAYS, NOTHING):
            found[index] = neuron
    return found, after


def _check_inputs(mlp: Mlp, constants: Constants, report: Report) -> None:
    """Report neurons whose input is not the constant 1. One that is not used may have none."""
    reads = ~constants.is_constant[None, :] & (mlp.up != 0)
    for row, column in np.argwhere(reads):
        report(mlp.name("up"), int(row), int(column), "the input of a neuron reads a channel")
    given = mlp.up @ np.where(constants.is_constant, constants.seen, 0.0)
    used = mlp.gate.any(axis=1) | mlp.down.any(axis=0)
    for row in np.flatnonzero((given != 1) & (used | (given != 0))):
        report(mlp.name("up"), int(row), None, f"the input of the neuron is {amount(given[row])}, not 1")


def _erasures(mlp: Mlp) -> dict[int, int]:
    """The neurons that subtract one place from itself."""
    alone = ((mlp.gate != 0).sum(axis=1) == 1) & ((mlp.down != 0).sum(axis=0) == 1)
    neurons = np.flatnonzero(alone)
    places = np.argmax(mlp.gate[neurons] != 0, axis=1)
    pairs = zip(neurons.tolist(), places.tolist(), strict=True)
    return {i: place for i, place in pairs if mlp.gate[i, place] == GATE and mlp.down[place, i] * GATE == -1}
