"""What is compared: neurons, heads and logits as linear forms over places of the residual stream.

A place stands for the channel that lives there at the time. Numbers are those of the circuit
(backends/transformer/circuit.py): scales, offsets and biases of the tensors are taken off. A coefficient that
is no whole number is what a weight gives that belongs to no circuit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Terms = frozenset[tuple[int, float]]
"""Places with their coefficients, none of which is 0."""


class Linear(NamedTuple):
    """A linear form over places."""

    terms: Terms
    constant: float


class Neuron(NamedTuple):
    """Adds coefficient * max(0, gate) to each output."""

    gate: Linear
    outputs: Terms


class Erasure(NamedTuple):
    """A neuron that takes away what stands in a place, offset and all."""

    place: int


class Row(NamedTuple):
    """A row of a memory: where it is written and read, and of which token before this one (the tap)."""

    key: Linear
    key_tap: int
    query: Linear
    query_tap: int


class Column(NamedTuple):
    """A column of a memory: what is written, of which token; where it is read, and what that adds to."""

    value: Linear
    tap: int
    gate: Linear
    outputs: Terms


class Constant(NamedTuple):
    """A column that holds the constant, in units of it."""

    value: Linear
    tap: int


class Memory(NamedTuple):
    """A head of rows of bits. The order of rows, columns and constants means nothing."""

    write: Linear
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    constants: tuple[Constant, ...]


class Strength(NamedTuple):
    """The write strength of a counter: where it sets, and where it adds a step."""

    set: Linear
    step: Linear


class Count(NamedTuple):
    """The column of a counter: steps to add, the count to set, and what the count is added to."""

    step: Linear
    value: Linear
    tap: int
    gate: Linear
    outputs: Terms


class Counter(NamedTuple):
    """A head that counts."""

    write: Strength
    rows: tuple[Row, ...]
    columns: tuple[Count, ...]
    constants: tuple[Constant, ...]


Head = Memory | Counter

ALWAYS = Linear(frozenset(), 1)
"""The form that is 1."""


def terms(pairs: Iterable[tuple[int, float]]) -> Terms:
    """Places with their coefficients: those of one place added up, zeros left out."""
    total: dict[int, float] = {}
    for place, coefficient in pairs:
        total[place] = total.get(place, 0) + coefficient
    return frozenset((place, coefficient) for place, coefficient in total.items() if coefficient)
