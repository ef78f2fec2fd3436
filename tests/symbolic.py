"""A circuit's neurons as z3 terms, and as numpy arrays: what a unit computes, for all inputs or many.

A channel is a Boolean where it is a bit, else a bit-vector. Neurons of a channel whose gates differ by
constants alone are one function of one integer, which is tabulated: the channel is a weighted sum of
statements that such an integer lies in an interval. What a circuit says of its channels, that they are 0 to
`maximum` and some never both above 0, is not taken for granted but has to be proved: `Symbolic.claims`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import z3

from qgpu.backends.transformer.circuit import Channel, Circuit, Form, Neuron
from qgpu.backends.transformer.ranges import in_order
from qgpu.backends.transformer.schedule import outputs_of


class Symbolic:
    """The neurons of a circuit as functions of some channels.

    Attributes:
        claims: what the circuit says of its channels.
    """

    def __init__(self, circuit: Circuit, given: Mapping[Channel, Any]) -> None:
        """Translate a circuit.

        Args:
            given: a Boolean for each bit that the neurons read and do not write, for a count the bit-vector
                of as many bits as its maximum has.
        """
        self._values: dict[Channel, Any] = dict(given)
        self.claims: list[Any] = []
        added: dict[Channel, list[tuple[Form, int]]] = defaultdict(list)
        neurons = [node for node in in_order(circuit.neurons) if isinstance(node, Neuron)]
        waiting = Counter(channel for neuron in neurons for channel in outputs_of(neuron))
        for neuron in neurons:
            for channel, coefficient in neuron.outputs:
                added[channel].append((neuron.gate, coefficient))
            for channel in outputs_of(neuron):
                waiting[channel] -= 1
                if not waiting[channel]:
                    self._complete(channel, added[channel])
        for pair in circuit.exclusive.items():
            self.claims.append(z3.Not(z3.And(*(self._values[channel] for channel in pair))))

    def bit(self, channel: Channel) -> Any:
        """A channel that is a bit."""
        return self._values.get(channel, z3.BoolVal(False))

    def word(self, channels: Sequence[Channel]) -> Any:
        """The bit-vector of a bus, least significant bit first."""
        one, zero = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
        digits = [z3.If(self.bit(channel), one, zero) for channel in reversed(channels)]
        return z3.Concat(*digits) if len(digits) > 1 else digits[0]

    def _complete(self, channel: Channel, added: Sequence[tuple[Form, int]]) -> None:
        """What a channel is, all its neurons being known."""
        by_terms: dict[frozenset[tuple[Channel, int]], list[tuple[int, int]]] = defaultdict(list)
        for gate, coefficient in added:
            by_terms[frozenset(gate.terms.items())].append((gate.constant, coefficient))
        parts = [part for terms, steps in by_terms.items() for part in self._parts(dict(terms), steps)]
        if channel.maximum == 1 and all(weight == 1 for weight, _ in parts):
            holds = [part for _, part in parts]
            self.claims += [z3.AtMost(*holds, 1)] if holds else []
            self._values[channel] = z3.Or(holds)
            return
        total = _sum(((part, weight) for weight, part in parts), sum(abs(weight) for weight, _ in parts))
        self.claims.append(z3.And(total >= 0, total <= channel.maximum))
        width = channel.maximum.bit_length()
        self._values[channel] = total == 1 if channel.maximum == 1 else z3.Extract(width - 1, 0, total)

    def _parts(self, terms: dict[Channel, int], steps: list[tuple[int, int]]) -> Iterator[tuple[int, Any]]:
        """A function of one integer as weights and Booleans, at most one of which holds."""
        low = sum(min(k, 0) * c.maximum for c, k in terms.items())
        high = sum(max(k, 0) * c.maximum for c, k in terms.items())
        table = [sum(k * max(0, v + constant) for constant, k in steps) for v in range(low, high + 1)]
        bits = all(z3.is_bool(self._values[channel]) for channel in terms)
        if bits and not any(table[:-1]):
            literals = [self._values[c] if k > 0 else z3.Not(self._values[c]) for c, k in terms.items()]
            yield from [(table[-1], z3.And(literals))] if table[-1] else []
            return
        value = _sum(((self._values[c], k) for c, k in terms.items()), max(-low, high))
        for weight in sorted(set(table) - {0}):
            yield weight, z3.Or([_between(value, *run) for run in _runs(table, weight, low)])


def _between(value: Any, first: int, last: int) -> Any:
    return value == first if first == last else z3.And(value >= first, value <= last)


def _runs(table: Sequence[int], weight: int, low: int) -> Iterator[tuple[int, int]]:
    """First and last of each run of integers at which a function has a value."""
    start = None
    for v, found in enumerate([*table, None], low):
        if found == weight and start is None:
            start = v
        if found != weight and start is not None:
            yield start, v - 1
            start = None


def _sum(terms: Iterable[tuple[Any, int]], size: int) -> Any:
    """A sum of weighted terms whose absolute value is at most `size`, as a signed bit-vector."""
    bits = size.bit_length() + 1
    return sum((_number(value, bits) * k for value, k in terms), z3.BitVecVal(0, bits))


def _number(value: Any, bits: int) -> Any:
    if z3.is_bool(value):
        return z3.If(value, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
    return z3.ZeroExt(bits - value.size(), value)


def refute(claim: Any, *given: Any, seconds: int = 60) -> Any:
    """Return a counterexample of a claim under conditions, or None where z3 proves it.

    Raises:
        TimeoutError: z3 does not tell in time.
    """
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", 1000 * seconds)
    solver.add(*given, z3.Not(claim))
    answer = solver.check()
    if answer == z3.unknown:
        raise TimeoutError(solver.reason_unknown())
    return solver.model() if answer == z3.sat else None


def evaluate(circuit: Circuit, given: Mapping[Channel, np.ndarray]) -> dict[Channel, np.ndarray]:
    """Return every channel in many cases at once, from those that the neurons read and do not write."""
    cases = len(next(iter(given.values())))
    values = defaultdict(lambda: np.zeros(cases, np.int64), given)
    for neuron in in_order(circuit.neurons):
        assert isinstance(neuron, Neuron)
        gate = np.full(cases, neuron.gate.constant)
        for channel, weight in neuron.gate.terms.items():
            gate += weight * values[channel]
        active = np.maximum(gate, 0)
        for channel, coefficient in neuron.outputs:
            values[channel] = values[channel] + coefficient * active
    return values


def number_of(values: Mapping[Channel, np.ndarray], bus: Sequence[Channel]) -> np.ndarray:
    """The number on a bus in each case."""
    return np.asarray(sum((values[channel] << i for i, channel in enumerate(bus)), np.int64(0)))
