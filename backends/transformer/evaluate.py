"""The weight-free evaluator: runs a circuit token by token in integers.

It follows the schedule's slots but none of the emitter's choices (places, scales, offsets), so that a
difference between it and the checkpoint is the emitter's, and one between it and the reference interpreter
the circuit's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.transformer.circuit import Channel, Circuit, CounterHead, Form, Head, Neuron
from qgpu.backends.transformer.schedule import Schedule

TAPS = 4
"""Tokens that a layer's convolution sees, its own included."""


class EvaluationError(ValueError):
    """A circuit broke a rule that its weights rely on: two keys, or a sum of rows without one constant."""


class _Forms:
    """A list of linear forms as one sparse integer matrix."""

    def __init__(self, forms: Sequence[Form], index: dict[Channel, int]) -> None:
        self.constants = np.array([form.constant for form in forms], dtype=np.int64)
        self.columns = np.array([index[c] for form in forms for c in form.terms], dtype=np.int64)
        self.weights = np.array([k for form in forms for k in form.terms.values()], dtype=np.int64)
        self.rows = np.repeat(np.arange(len(forms)), [len(form.terms) for form in forms])

    def __call__(self, values: np.ndarray) -> np.ndarray:
        products = self.weights * values[self.columns]
        sums = np.bincount(self.rows, weights=products, minlength=len(self.constants))
        return sums.astype(np.int64) + self.constants


class _Neurons:
    def __init__(self, neurons: Sequence[Neuron], index: dict[Channel, int]) -> None:
        self.gates = _Forms([neuron.gate for neuron in neurons], index)
        self.sources = np.repeat(np.arange(len(neurons)), [len(neuron.outputs) for neuron in neurons])
        self.targets = np.array([index[c] for n in neurons for c, _ in n.outputs], dtype=np.int64)
        self.weights = np.array([k for n in neurons for _, k in n.outputs], dtype=np.int64)

    def run(self, values: np.ndarray) -> None:
        active = np.maximum(self.gates(values), 0)
        np.add.at(values, self.targets, self.weights * active[self.sources])


@dataclass
class _Counter:
    head: CounterHead
    count: int = 0

    def run(self, values: np.ndarray, index: dict[Channel, int], history: deque[np.ndarray]) -> None:
        def read(form: Form) -> int:
            return int(sum(k * values[index[c]] for c, k in form.terms.items()) + form.constant)

        if read(self.head.set) > 0:
            self.count = read(self.head.value)
        elif read(self.head.step) > 0:
            self.count += 1
        values[index[self.head.output]] += self.count


class _Memory:
    """One memory head; `constant` marks the rows that hold the constant."""

    def __init__(self, head: Head, index: dict[Channel, int]) -> None:
        self.head = head
        self.state = np.zeros((len(head.keys), len(head.columns)), dtype=np.int64)
        self.constant = np.zeros(len(head.keys), dtype=bool)
        self.keys = _Forms(head.keys, index)
        self.queries = _Forms(head.queries, index)
        self.write = _Forms([head.write], index)
        self.values = {
            tap: ([i for i, c in enumerate(head.columns) if c.tap == tap])
            for tap in {c.tap for c in head.columns}
        }
        self.value_forms = {
            tap: _Forms([head.columns[i].value for i in places], index) for tap, places in self.values.items()
        }
        always = Form({}, 1)
        self.gates = _Forms([always if c.gate is None else c.gate for c in head.columns], index)
        holds = always if head.constant_where is None else head.constant_where
        self.holds = _Forms([holds], index)
        self.targets = np.array([index[c] for col in head.columns for c, _ in col.outputs], dtype=np.int64)
        self.weights = np.array([k for col in head.columns for _, k in col.outputs], dtype=np.int64)
        self.sources = np.repeat(np.arange(len(head.columns)), [len(c.outputs) for c in head.columns])

    def run(self, values: np.ndarray, index: dict[Channel, int], history: deque[np.ndarray]) -> None:
        if self.write(values)[0] >= 1:
            self._store(values, history)
        read = self.queries(values) >= 1
        holds = int(self.constant[read].sum())
        if read.sum() > 1 and (holds > 1 or (not holds and self.state[read].any())):
            raise EvaluationError(
                f"{self.head.name}: a read of {read.sum()} rows needs one with the constant"
            )
        result = self.state[read].sum(axis=0) * (self.gates(values) >= 1)
        np.add.at(values, self.targets, self.weights * result[self.sources])

    def _store(self, values: np.ndarray, history: deque[np.ndarray]) -> None:
        seen = self._at(values, history, self.head.key_tap)
        rows = np.zeros(len(self.state), dtype=bool) if seen is None else self.keys(seen) >= 1
        initial = self.head.initial is not None and rows.sum() == self.head.initial[1]
        if rows.sum() > 1 and not initial:
            raise EvaluationError(f"{self.head.name}: {rows.sum()} rows written at once")
        row = np.zeros(self.state.shape[1], dtype=np.int64)
        for tap, places in self.values.items():
            source = self._at(values, history, tap)
            row[places] = 0 if source is None else self.value_forms[tap](source) >= 1
        self.state[rows] = row
        self.constant[rows] = self.holds(values)[0] >= 1

    @staticmethod
    def _at(values: np.ndarray, history: deque[np.ndarray], tap: int) -> np.ndarray | None:
        """What this layer read `tap` tokens ago: all channels that were complete then are the same at its
        end.
        """
        if not tap:
            return values
        return history[-tap] if len(history) >= tap else None


class Evaluator:
    """Runs a scheduled circuit token by token.

    Attributes:
        values: after a token, the value of every channel by name (`value_of`).
    """

    def __init__(self, circuit: Circuit, schedule: Schedule) -> None:
        self.circuit = circuit
        self.index = {channel: i for i, channel in enumerate(circuit.channels)}
        self._by_name = {channel.name: i for channel, i in self.index.items()}
        self._slots: list[list[_Memory | _Counter] | _Neurons] = []
        for heads, neurons in zip(schedule.heads, schedule.neurons, strict=True):
            self._slots.append(
                [_Memory(h, self.index) if isinstance(h, Head) else _Counter(h) for h in heads]
            )
            self._slots.append(_Neurons(neurons, self.index))
        tables = [circuit.token_tables[c] for c in circuit.channels if c in circuit.token_tables]
        self._token_rows = np.array([self.index[c] for c in circuit.channels if c in circuit.token_tables])
        self._token_tables = np.stack(tables)
        self._logit_ids = np.array(list(circuit.readout.logits), dtype=np.int64)
        self._logits = _Forms(list(circuit.readout.logits.values()), self.index)
        self._history: deque[np.ndarray] = deque(maxlen=TAPS - 1)
        self.values = np.zeros(len(circuit.channels), dtype=np.int64)

    def step(self, token_id: int) -> int:
        """Run one token and return the token of the largest logit."""
        values = np.zeros(len(self.circuit.channels), dtype=np.int64)
        values[self._token_rows] = self._token_tables[:, token_id]
        for slot in self._slots:
            if isinstance(slot, _Neurons):
                slot.run(values)
                continue
            for head in slot:
                head.run(values, self.index, self._history)
        self.values = values
        self._history.append(values)
        return int(self._logit_ids[np.argmax(self._logits(values))])

    def value_of(self, name: str) -> int:
        """The value of a channel after the latest token."""
        return int(self.values[self._by_name[name]])

    def number_of(self, name: str, width: int) -> int:
        """The binary number on a bus after the latest token."""
        return sum(self.value_of(f"{name}.{i}") << i for i in range(width))
